package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// connectionsMax is how many connections a source with a URL of its own makes.
const connectionsMax = 2

var (
	//go:embed queries/settings.sql
	settingsSQL string
	//go:embed queries/table.sql
	tableSQL string
	//go:embed queries/columns.sql
	columnsSQL string
	//go:embed queries/indexes.sql
	indexesSQL string
	//go:embed queries/snapshot.sql
	snapshotSQL string
	//go:embed queries/horizon.sql
	horizonSQL string
)

// connect makes the source's own connections, where it wasn't given any.
func (s *Source) connect(ctx context.Context) error {
	if s.pool != nil {
		return nil
	}
	config, err := pgxpool.ParseConfig(s.config.URL)
	if err != nil {
		// The parser's own message may quote the password.
		return s.unusable("source.database is not a connection string; " +
			"want postgres://user@host:5432/database")
	}
	config.MaxConns = connectionsMax
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "tally"
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("connect to the database of %s: %w", s.config.Table, err)
	}
	return nil
}

// query runs one statement with the package's settings and gives each row's values as text, which
// each must not keep. Both statements are unnamed and go in one message with one Sync, so they
// are one transaction and one round trip, and a pooler can't tear them apart.
func (s *Source) query(
	ctx context.Context, sql string, params []string, each func(values [][]byte),
) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.explain(err)
	}
	defer conn.Release()
	bound := make([][]byte, len(params))
	for i, param := range params {
		bound[i] = []byte(param)
	}
	batch := &pgconn.Batch{}
	batch.ExecParams(settingsSQL, nil, nil, nil, nil)
	batch.ExecParams(sql, bound, nil, nil, nil)
	results := conn.Conn().PgConn().ExecBatch(ctx, batch)
	for statement := 0; results.NextResult(); statement++ {
		rows := results.ResultReader()
		for rows.NextRow() {
			if statement == 1 {
				each(rows.Values())
			}
		}
		// An error here comes back from the last Close as well.
		_, _ = rows.Close()
	}
	if err := results.Close(); err != nil {
		return s.explain(err)
	}
	return nil
}

// explain makes stream.ErrUnusable of what only the configuration or a grant can cure.
func (s *Source) explain(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return fmt.Errorf("read table %s: %w", s.config.Table, err)
	}
	switch class := refused.Code[:min(2, len(refused.Code))]; {
	case strings.Contains(refused.Message, "row-level security"):
		return s.hidden()
	case class == "28", class == "3D", class == "42":
		return fmt.Errorf("%w: read table %s: %w; check source and the role's rights",
			stream.ErrUnusable, s.config.Table, err)
	}
	return fmt.Errorf("read table %s: %w", s.config.Table, err)
}

func (s *Source) hidden() error {
	return s.unusable("row-level security hides rows from this role; " +
		"give it BYPASSRLS, or read as a role that no policy binds")
}
