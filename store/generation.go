package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Generation is one complete set of state and results of a reconciliation.
type Generation struct {
	ID             int32
	Reconciliation string
	RuleVersion    string
	Shards         int32
	Kind           GenerationKind
	Status         GenerationStatus
	CreatedAt      time.Time
	StatusAt       time.Time
	// Base is the generation that served when it was begun; 0 for the first.
	Base int32
	// Interval is the range of event times that an interval settles.
	Interval stream.Range
	// CatchUp is where the base stood then; nil for the first generation.
	CatchUp *stream.CatchUp
}

// GenerationKind says what a generation is built over.
type GenerationKind string

// The kinds of generation.
const (
	// Full is built over all that the sources have.
	Full GenerationKind = "full"
	// Interval is built over a range of event times, to be merged into its base.
	Interval GenerationKind = "interval"
)

// GenerationStatus says what a generation is for.
type GenerationStatus string

// The statuses of a generation.
const (
	// Candidate is being built, or followed as a shadow; no view shows it.
	Candidate GenerationStatus = "candidate"
	Serving   GenerationStatus = "serving"
	// Retired has served, and can serve again.
	Retired GenerationStatus = "retired"
	// Merged is an interval whose differences its base took over.
	Merged    GenerationStatus = "merged"
	Abandoned GenerationStatus = "abandoned"
	// Purged has lost its rows.
	Purged GenerationStatus = "purged"
)

// NewCandidate is what a rebuild begins with.
type NewCandidate struct {
	Registration
	// Interval, when it is not empty, makes the candidate one of kind interval.
	Interval stream.Range
	// Base is the generation that serves, CatchUp where it stands.
	Base    int32
	CatchUp stream.CatchUp
}

// Begin creates a candidate beside the serving generation and gives its number. It returns
// ErrRuleChanged when a generation has another rule under the same version.
func (s *Store) Begin(ctx context.Context, c NewCandidate) (generation int32, err error) {
	err = s.retry(ctx, func() error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			generation, err = s.beginTx(ctx, tx, &c)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("begin a rebuild of %s: %w", c.Name, err)
	}
	return generation, nil
}

func (s *Store) beginTx(ctx context.Context, tx pgx.Tx, c *NewCandidate) (int32, error) {
	if _, err := tx.Exec(ctx, s.sql("register_reconciliation"), c.Name); err != nil {
		return 0, fmt.Errorf("lock it: %w", err)
	}
	var other int32
	var keys []string
	row := tx.QueryRow(ctx, s.sql("generation_rule"), c.Name, c.RuleVersion, string(c.Rule))
	switch err := row.Scan(&other, &keys); {
	case err == nil:
		return 0, fmt.Errorf("%w %s: %s are not those of generation %d; give the changed rule a new "+
			"rule.version, which enters every identity", ErrRuleChanged, c.RuleVersion,
			strings.Join(keys, ", "), other)
	case !errors.Is(err, pgx.ErrNoRows):
		return 0, fmt.Errorf("compare its rule: %w", err)
	}
	kind, from, to := Full, any(nil), any(nil)
	if c.Interval != (stream.Range{}) {
		kind, from, to = Interval, c.Interval.From.String(), c.Interval.To.String()
	}
	var generation int32
	err := tx.QueryRow(ctx, s.sql("generation_begin"), c.Name, c.RuleVersion, string(c.Rule),
		c.Shards, kind, c.Base, from, to, describeCatchUp(&c.CatchUp)).Scan(&generation)
	return generation, err
}

// describeCatchUp gives a catch-up as it is stored: a JSON object.
func describeCatchUp(c *stream.CatchUp) string {
	return fmt.Sprintf(`{"watermark":%q,"partitions":%s}`, c.Watermark, describeSources(c.Partitions))
}

// Generations gives the generations of a reconciliation, the newest last.
func (s *Store) Generations(ctx context.Context, name string) (list []Generation, err error) {
	err = s.retry(ctx, func() error {
		list, err = s.generations(ctx, s.pool, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the generations of %s: %w", name, err)
	}
	return list, nil
}

// asker runs a query: a pool or a transaction.
type asker interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (s *Store) generations(ctx context.Context, q asker, name string) ([]Generation, error) {
	rows, err := q.Query(ctx, s.sql("generation_list"), name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g Generation, err error) {
		var from, to *micros
		var catchUp []byte
		err = row.Scan(&g.ID, &g.Reconciliation, &g.RuleVersion, &g.Shards, &g.Kind, &g.Status,
			&g.CreatedAt, &g.StatusAt, &g.Base, &from, &to, &catchUp)
		if err == nil && from != nil {
			g.Interval = stream.Range{From: stream.Micros(*from), To: stream.Micros(*to)}
		}
		if err == nil && catchUp != nil {
			g.CatchUp, err = readCatchUp(catchUp)
		}
		return g, err
	})
}

func readCatchUp(text []byte) (*stream.CatchUp, error) {
	var stored struct {
		Watermark  string          `json:"watermark"`
		Partitions json.RawMessage `json:"partitions"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, fmt.Errorf("read where its base stood: %w", err)
	}
	watermark, ok := parseMicros(stored.Watermark)
	if !ok {
		return nil, fmt.Errorf("read where its base stood: %q is no watermark", stored.Watermark)
	}
	return &stream.CatchUp{
		Watermark: watermark, Partitions: readSources(stored.Partitions),
	}, nil
}

// Standing gives where each shard of a generation stands, all as of one moment.
func (s *Store) Standing(ctx context.Context, generation int32) (states []State, err error) {
	err = s.retry(ctx, func() error {
		states, err = s.standing(ctx, s.pool, generation)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read where generation %d stands: %w", generation, err)
	}
	return states, nil
}

func (s *Store) standing(ctx context.Context, q asker, generation int32) ([]State, error) {
	rows, err := q.Query(ctx, s.sql("generation_stands"), generation)
	if err != nil {
		return nil, err
	}
	var states []State
	for rows.Next() {
		if err := addStanding(rows, &states); err != nil {
			return nil, err
		}
	}
	return states, rows.Err()
}

func addStanding(row pgx.Rows, states *[]State) error {
	var shard, number *int32
	var epoch int64
	var low micros
	var side, source, position, identity *string
	var watermark, lastEvent *micros
	var idle *bool
	err := row.Scan(&shard, &epoch, &low, &side, &source, &number, &position, &watermark, &idle,
		&lastEvent, &identity)
	if err != nil {
		return err
	}
	for len(*states) <= int(*shard) {
		*states = append(*states, State{})
	}
	state := &(*states)[*shard]
	state.Epoch, state.Watermark = epoch, stream.Micros(low)
	if side == nil {
		return nil
	}
	p := stream.Progress{
		From: *position, To: *position, Watermark: stream.Micros(*watermark), Idle: *idle,
		LastEventAt: stream.Micros(*lastEvent), Identity: *identity,
	}
	p.Source, p.Number = *source, *number
	if p.Side, err = stream.ParseSide(*side); err != nil {
		return err
	}
	state.Progress = append(state.Progress, p)
	return nil
}

// Abandon gives a candidate up. Its rows stay until it is purged.
func (s *Store) Abandon(ctx context.Context, generation int32) error {
	return s.changeStatus(ctx, generation, Abandoned, Candidate)
}

// PurgeGeneration deletes the rows of a generation that neither serves nor is a candidate, in small steps; step
// is told after each how many rows it deleted. The generation itself stays on record.
func (s *Store) PurgeGeneration(ctx context.Context, generation int32, step func(rows int64)) error {
	if err := s.changeStatus(ctx, generation, Purged, Retired, Merged, Abandoned, Purged); err != nil {
		return err
	}
	for {
		var rows int64
		err := s.retry(ctx, func() error {
			row := s.pool.QueryRow(ctx, s.sql("generation_purge"), generation, purgeRows)
			return row.Scan(&rows)
		})
		if err != nil {
			return fmt.Errorf("purge generation %d: %w", generation, err)
		}
		if rows == 0 {
			return nil
		}
		step(rows)
	}
}

// purgeRows bounds the rows of each table that one step deletes.
const purgeRows = 5000

func (s *Store) changeStatus(
	ctx context.Context, generation int32, to GenerationStatus, from ...GenerationStatus,
) error {
	err := s.retry(ctx, func() error {
		return s.pool.QueryRow(ctx, s.sql("generation_change"), generation, to, words(from)).
			Scan(&generation)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("it is none that is %s; tally generation list shows them",
			strings.Join(words(from), " or "))
	}
	if err != nil {
		return fmt.Errorf("mark generation %d as %s: %w", generation, to, err)
	}
	return nil
}

func words(list []GenerationStatus) []string {
	words := make([]string, len(list))
	for i, status := range list {
		words[i] = string(status)
	}
	return words
}
