package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// statement is one statement of a batch: its name, text and parameters.
type statement struct {
	name, sql string
	args      args
	// results are the formats of the columns that it returns; nil for binary.
	results []int16
}

var binaryFormat = []int16{1}

func (s *statement) formats() []int16 {
	if s.results == nil {
		return binaryFormat
	}
	return s.results
}

// reader takes the rows of one statement of a batch.
type reader func(rows *pgconn.ResultReader) error

// run sends the statements as runBatch does; one by one where something wants to be told of each.
func (s *Store) run(
	ctx context.Context, conn *pgconn.PgConn, statements []statement, readers map[int]reader,
) error {
	if s.onStep == nil {
		return runBatch(ctx, conn, statements, readers)
	}
	for i := range statements {
		err := s.step(ctx, statements[i].name, func() error {
			return runBatch(ctx, conn, statements[i:i+1], map[int]reader{0: readers[i]})
		})
		if err != nil {
			return markLost(conn, err)
		}
	}
	return nil
}

// step tells whoever wants to know before and after a statement.
func (s *Store) step(ctx context.Context, name string, do func() error) error {
	if s.onStep == nil {
		return do()
	}
	if err := s.onStep(ctx, name, false); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return s.onStep(ctx, name, true)
}

// runBatch sends the statements in one round trip, and hands the rows of the statements that have a
// reader, by position, to it. The server skips what follows a statement that fails, so a commit at
// the end happens only if everything before it succeeded.
func runBatch(
	ctx context.Context, conn *pgconn.PgConn, statements []statement, readers map[int]reader,
) error {
	var batch pgconn.Batch
	for i := range statements {
		s := &statements[i]
		batch.ExecParams(s.sql, s.args.values, s.args.oids, binaryFormat, s.formats())
	}
	results := conn.ExecBatch(ctx, &batch)
	done := 0
	for results.NextResult() {
		rows := results.ResultReader()
		if read := readers[done]; read != nil {
			if err := read(rows); err != nil {
				return markLost(conn, errors.Join(err, results.Close()))
			}
		}
		if _, err := rows.Close(); err != nil {
			break // Close below gives the same error
		}
		done++
	}
	if err := results.Close(); err != nil {
		if done < len(statements) {
			err = fmt.Errorf("%s: %w", statements[done].name, err)
		}
		return markLost(conn, err)
	}
	return nil
}

// readAll runs one statement and gives its rows.
func readAll(ctx context.Context, conn *pgconn.PgConn, s statement, row func(v [][]byte)) error {
	read := func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			row(rows.Values())
		}
		return nil
	}
	return runBatch(ctx, conn, []statement{s}, map[int]reader{0: read})
}
