package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/migrations"
	"github.com/tallystick/tallystick/queries"
)

// database is the connection over which the benchmark looks around and the two other contenders
// work, and the schemas that it made.
type database struct {
	*pgx.Conn
	schemas []string
}

// createSchema makes a migrated schema, to be dropped by dropSchema or close.
func (b *bench) createSchema(ctx context.Context, what string) (string, error) {
	b.made++
	schema := fmt.Sprintf("tally_bench_%s_%s_%d", b.tag, what, b.made)
	b.db.schemas = append(b.db.schemas, schema)
	if err := migrations.Up(ctx, b.db.Config(), schema, quiet); err != nil {
		return "", err
	}
	return schema, nil
}

func (d *database) dropSchema(ctx context.Context, schema string) error {
	if err := d.do(ctx, "drop_schema", schema); err != nil {
		return err
	}
	for i, s := range d.schemas {
		if s == schema {
			d.schemas = append(d.schemas[:i], d.schemas[i+1:]...)
			break
		}
	}
	return nil
}

// do runs the statements of a file, without parameters.
func (d *database) do(ctx context.Context, name, schema string) error {
	if _, err := d.PgConn().Exec(ctx, render(name, schema)).ReadAll(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// settle writes out what earlier work left behind, so that no contender pays for another. It does
// nothing where the role may not.
func (d *database) settle(ctx context.Context) {
	_, _ = d.PgConn().Exec(ctx, "checkpoint").ReadAll()
}

// wal gives how many bytes of WAL the server has written.
func (d *database) wal(ctx context.Context) (bytes int64, err error) {
	if err := d.QueryRow(ctx, queries.Bench("wal")).Scan(&bytes); err != nil {
		return 0, fmt.Errorf("read the position of the WAL: %w", err)
	}
	return bytes, nil
}

// setting is a line about the server.
type setting struct{ Name, Value string }

func (d *database) settings(ctx context.Context) ([]setting, error) {
	rows, err := d.Query(ctx, queries.Bench("server"))
	if err != nil {
		return nil, fmt.Errorf("read the server's settings: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[setting])
	if err != nil {
		return nil, fmt.Errorf("read the server's settings: %w", err)
	}
	return list, nil
}

// results counts a contender's pairs and final rows and sums up their identities.
type results struct {
	Pairs, Final int64
	Fingerprint  string
}

func (d *database) results(ctx context.Context, name, schema string) (results, error) {
	rows, err := d.Query(ctx, render(name, schema))
	if err != nil {
		return results{}, fmt.Errorf("count the results: %w", err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[results])
	if err != nil {
		return r, fmt.Errorf("count the results: %w", err)
	}
	return r, nil
}

func render(name, schema string) string { return queries.Render(queries.Bench(name), schema) }
