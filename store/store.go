// Package store keeps the state and the results of a reconciliation in Postgres: it registers
// generations, takes shards under a fencing token, reads what an epoch needs and commits an epoch
// in one transaction.
//
// It needs no session state, so it also works behind a pooler that pools transactions.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/queries"
)

const (
	applicationName = "tallystick"
	retryForDefault = 5 * time.Minute
	// diskFullForDefault is long: somebody has to come and make room.
	diskFullForDefault = time.Hour
	leaseForDefault    = 10 * time.Second
)

// Config says where the store is and how to reach it.
type Config struct {
	// ConnString is a URL or keyword/value string; what it leaves out comes from the PG*
	// variables, all of it when it is empty.
	ConnString string
	// Schema holds the tables; it has been migrated.
	Schema string
	// Logger gets each statement at debug level, without its values. Nil logs nothing.
	Logger *slog.Logger
	// MaxConns bounds the pool. A shard uses up to two at once. 0 is pgx's default.
	MaxConns int32
	// RetryFor bounds how long one operation is retried while Postgres is away. 0 is 5 minutes.
	RetryFor time.Duration
	// LeaseFor is how long a shard stays with a worker that gives no sign of life. 0 is 10 seconds.
	LeaseFor time.Duration
	// DiskFullFor bounds the same while the server's disk is full. 0 is an hour.
	DiskFullFor time.Duration
	// OnRetry, when set, is told of each failure that is retried, and how many there were; with a
	// nil error when the operation succeeded after all.
	OnRetry func(err error, attempt int)
	// OnUnreplicated, when set, is told when the wait of a commit for synchronous standbys was
	// cancelled: it is durable on the server, and may be lost with it. A later commit that is not
	// cancelled covers it; until then a source must not be told to forget what was read.
	OnUnreplicated func(said string)
	// OnStep, when set, is told before and after each statement of what is written, by its name;
	// statements then go one by one instead of together. An error that it returns is the
	// statement's. It is there for crash tests.
	OnStep func(ctx context.Context, statement string, done bool) error
	// RetainEpochs is how many epochs back a shard can be restored to. 0 is 100; never under 2.
	RetainEpochs int
	// Configure, when set, changes the pool's configuration before it is opened.
	Configure func(*pgxpool.Config)
}

// Store is an open connection pool to one schema. It is safe for concurrent use.
type Store struct {
	pool       *pgxpool.Pool
	schema     string
	statements map[string]string
	retryFor   time.Duration
	leaseFor   time.Duration
	retain     int64
	onRetry    func(err error, attempt int)

	diskFullFor    time.Duration
	onUnreplicated func(said string)
	troubles       troubles
	identity       identified
	onStep         func(ctx context.Context, statement string, done bool) error
}

// Open opens the pool and reaches the server once.
func Open(ctx context.Context, config Config) (*Store, error) {
	pc, err := poolConfig(config)
	if err != nil {
		return nil, err
	}
	s := &Store{
		schema: config.Schema, statements: map[string]string{},
		diskFullFor: config.DiskFullFor, onUnreplicated: config.OnUnreplicated,
		retryFor: config.RetryFor, leaseFor: config.LeaseFor,
		onRetry: config.OnRetry, onStep: config.OnStep,
	}
	for _, name := range statementNames {
		s.statements[name] = queries.Render(queries.Engine(name), config.Schema)
	}
	if s.diskFullFor == 0 {
		s.diskFullFor = diskFullForDefault
	}
	if s.retryFor == 0 {
		s.retryFor = retryForDefault
	}
	if s.leaseFor == 0 {
		s.leaseFor = leaseForDefault
	}
	s.retain = retainDefault
	if config.RetainEpochs != 0 {
		s.retain = max(int64(config.RetainEpochs), retainMin)
	}
	s.watchNotices(&pc.ConnConfig.Config)
	if s.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return nil, fmt.Errorf("open the connection pool: %w", err)
	}
	if err := s.pool.Ping(ctx); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("connect to Postgres: %w; check database and the PG* variables", err)
	}
	s.identify(ctx)
	return s, nil
}

// Pool gives the connection pool, for what else has to be asked of the same database.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Schema gives the name of the schema.
func (s *Store) Schema() string { return s.schema }

// Close closes the pool; it waits for connections in use.
func (s *Store) Close() { s.pool.Close() }

// sql gives the text of a statement, which is the same for every call.
func (s *Store) sql(name string) string {
	text, ok := s.statements[name]
	if !ok {
		panic("store: no statement " + name)
	}
	return text
}

func poolConfig(config Config) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(config.ConnString)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err) // pgx hides its password
	}
	// No named statements, which a pooler would lose between transactions.
	pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = applicationName
	}
	if config.MaxConns > 0 {
		pc.MaxConns = config.MaxConns
	}
	if config.Logger != nil {
		pc.ConnConfig.Tracer = newTracer(config.Logger)
	}
	if config.Configure != nil {
		config.Configure(pc)
	}
	return pc, nil
}

var statementNames = []string{
	"clock", "fetch", "load_rows", "spill",
	"result_ids", "buffer_names",
	"epoch_settings", "epoch_fence", "epoch_retire", "epoch_upsert", "epoch_corrections",
	"epoch_quarantine", "epoch_resolve", "epoch_offsets", "epoch_manifest", "epoch_notify",
	"epoch_buffer_copy", "epoch_match_copy", "epoch_transition_copy",
	"reacquire", "manifest_attempt", "take", "take_progress", "take_manifest", "leave",
	"lease_extend", "lease_list", "lease_request",
	"register_reconciliation", "register_generation", "serving",
	"generation_begin", "generation_change", "generation_corrections",
	"generation_epoch", "generation_fence", "generation_list", "generation_merged",
	"generation_number", "generation_purge", "generation_releases", "generation_reopen",
	"generation_resolve", "generation_rule", "generation_serve", "generation_stands",
	"generation_status", "generation_tip", "generation_validated",
	"rebuild_keys", "rebuild_merge", "rebuild_promote", "rebuild_reach",
	"purge_oldest", "purge_mark", "purge_step", "purge_restorable",
	"archive_shard", "archive_matches", "archive_changed", "archive_rows", "archive_next",
	"archive_clear_buffer", "archive_clear_offsets", "archive_clear_manifests",
	"archive_buffer_copy", "archive_manifest_copy", "archive_put_matches",
	"archive_put_transitions", "archive_number", "archive_last_status", "archive_attempt",
	"released", "release", "lock_shard", "quarantine_status",
	"server_identity", "shard_stands",
	"verify_shard", "verify_active", "verify_manifests", "verify_offsets", "verify_transitions",
	"verify_results_by_key", "verify_corrections", "verify_quarantine", "verify_buffer",
	"verify_first_epochs", "verify_known", "verify_results", "verify_outputs", "verify_pasts",
	"scan_settings",
	"verify_cross_serving", "verify_cross_attempts", "verify_cross_partners",
	"verify_cross_members", "verify_cross_aside", "verify_cross_epochs",
	"validate_scope", "validate_compare", "validate_totals", "validate_coverage", "validate_unknown",
	"validate_outside", "validate_lock", "validate_store", "validate_newest", "validate_accept",
	"restore_shard", "missing_shard", "restore_number", "restore_fence", "restore_buffer",
	"restore_offsets", "restore_results", "restore_said", "restore_aside", "restore_released", "restore_manifests", "restore_attempts", "restore_note",
	"epoch_output",
}
