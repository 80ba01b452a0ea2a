package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
)

func TestFindPooling(t *testing.T) {
	t.Parallel()
	db := testenv.EmptyDB(t)
	for want, address := range map[store.Pooling]string{
		store.PoolsNothing:      db.Direct,
		store.PoolsSessions:     db.Behind(t, testenv.PoolSessions),
		store.PoolsTransactions: db.Behind(t, testenv.PoolTransactions),
	} {
		config, err := pgxpool.ParseConfig(address)
		if err != nil {
			t.Fatal(err)
		}
		config.MaxConns = 2
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		for range 5 {
			if got, err := store.FindPooling(t.Context(), pool); err != nil || got != want {
				t.Errorf("found pooling %q, %v, want %q", got, err, want)
			}
		}
	}
}
