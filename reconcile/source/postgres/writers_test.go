package postgres

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/testenv"
)

// TestRandomWritersLoseNothing reads, and now and then starts again from its position, while
// writers hold transactions of random length open, roll some back, and share a cursor value.
func TestRandomWritersLoseNothing(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	db := database(t, `create table public.risks (seq int not null, id text primary key,
		txid xid8 not null default pg_current_xact_id(), at timestamptz default '2024-01-01Z')`)
	var writers sync.WaitGroup
	committed := make([][]string, 4)
	for w := range committed {
		writers.Go(func() {
			committed[w] = writeRandomly(t, db, rand.New(rand.NewPCG(seed, uint64(w))), w)
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()

	seen := map[string]int{}
	position, ended := "", false
	s := open(t, sound(db), "", "")
	random := rand.New(rand.NewPCG(seed, 99))
	for deadline := time.Now().Add(time.Minute); ; {
		records, atEnd, err := s.Read(t.Context(), 1+random.IntN(60))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			seen[r.Event.ID]++
			position = r.Position
		}
		if random.IntN(12) == 0 {
			s = open(t, sound(db), position, s.Identity())
		}
		if ended && atEnd && (complete(committed, seen) || time.Now().After(deadline)) {
			break
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	total := 0
	for _, ids := range committed {
		total += len(ids)
		for _, id := range ids {
			if seen[id] != 1 {
				t.Errorf("row %s was read %d times", id, seen[id])
			}
		}
	}
	if total != len(seen) || total == 0 {
		t.Errorf("%d rows committed, %d read", total, len(seen))
	}
}

func complete(committed [][]string, seen map[string]int) bool {
	total := 0
	for _, ids := range committed {
		total += len(ids)
	}
	return len(seen) >= total
}

// writeRandomly gives the ids that one writer committed.
func writeRandomly(t *testing.T, db *testenv.Database, random *rand.Rand, writer int) []string {
	var all []string
	for n := range 25 {
		var ids []string
		rollBack := fmt.Errorf("writer %d rolls %d back", writer, n)
		err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			for i := range 1 + random.IntN(4) {
				id := fmt.Sprintf("%d-%d-%d", writer, n, i)
				_, err := tx.Exec(t.Context(),
					"insert into public.risks (seq, id) values ($1, $2)", random.IntN(3), id)
				if err != nil {
					return err
				}
				ids = append(ids, id)
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			}
			if random.IntN(5) == 0 {
				return rollBack
			}
			return nil
		})
		switch {
		case err == nil:
			all = append(all, ids...)
		case errors.Is(err, rollBack):
		default:
			t.Error(err)
			return all
		}
	}
	return all
}
