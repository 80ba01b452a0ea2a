package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv"
)

// follower reads the history of results, of each shard what is new.
type follower struct {
	cursor map[int32]int64
	status map[string]string
	// byEpoch reads all shards together, which is the order where their number has changed.
	byEpoch bool
}

func (f *follower) follow(ctx context.Context, db *testenv.Database, name string) error {
	order := "shard, epoch, ordinal"
	if f.byEpoch {
		order = "epoch, shard, ordinal"
	}
	rows, err := db.Pool.Query(ctx, `select shard, epoch, match_id, coalesce(from_status, ''), to_status
		from tally.result_history where reconciliation = $1 order by `+order, name)
	if err != nil {
		return err
	}
	defer rows.Close()
	read := map[int32]int64{}
	for rows.Next() {
		var shard int32
		var epoch int64
		var id, from, to string
		if err := rows.Scan(&shard, &epoch, &id, &from, &to); err != nil {
			return err
		}
		if epoch <= f.cursor[shard] {
			continue
		}
		read[shard] = max(read[shard], epoch)
		was := f.status[id]
		if from != "" && was != from || from == "" && stream.Status(was).Active() {
			return fmt.Errorf("epoch %d of shard %d takes %s from %q to %q, it was %q", epoch, shard, id,
				from, to, was)
		}
		f.status[id] = to
	}
	maps.Copy(f.cursor, read)
	return rows.Err()
}

// has gives the active results as they were followed.
func (f *follower) has() (list []string) {
	for id, status := range f.status {
		if stream.Status(status).Active() {
			list = append(list, id+" "+status)
		}
	}
	slices.Sort(list)
	return list
}

func lines(ctx context.Context, db *testenv.Database, sql string, args ...any) ([]string, error) {
	rows, err := db.Pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list, rows.Err()
}
