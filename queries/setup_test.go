package queries_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/migrations"
	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/testenv"
)

// hostileSchema would break a statement that puts it in unquoted, or twice.
const hostileSchema = `we"ird'; drop $1 :"schema" :'limit' -- %s`

func TestMain(m *testing.M) { testenv.Main(m) }

// fixture gives a transaction on a database whose schema has the name given, with the rows of
// testdata/fixture.sql. One transaction has one now(), so that ages are exact.
func fixture(t *testing.T, schema string) pgx.Tx {
	t.Helper()
	db := testenv.EmptyDB(t)
	config, err := pgx.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), config, schema, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile("testdata/fixture.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	setUp := "set local timezone = 'UTC'; " + queries.Render(string(rows), schema)
	if _, err := tx.Conn().PgConn().Exec(t.Context(), setUp).ReadAll(); err != nil {
		t.Fatal(err)
	}
	return tx
}
