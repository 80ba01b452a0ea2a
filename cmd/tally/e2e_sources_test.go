package main

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mixedConfig = `name: mixed
rule: {version: v1, join: full, before: 10m, after: 10m, lateness: 5m}
left:
  source:
    - {type: file, path: old.ndjson.gz}
    - {type: file, path: shop.csv, delimiter: ";"}
    - {type: file, path: web.ndjson}
  id: id
  revision: rev
  key: key
  time: time
  out_of_orderness: 1h
right:
  source:
    - {type: postgres, table: public.signals, cursor: seq, transaction: txid}
    - {type: file, path: right.ndjson}
  id: id
  revision: rev
  key: key
  time: time
  out_of_orderness: 1h
epoch: {max_events: 7}
`

const signalsTable = `create table public.signals (
	seq bigint generated always as identity primary key,
	txid xid8 not null default pg_current_xact_id(),
	id text, rev bigint, key text, time timestamptz, amount numeric)`

// signal inserts event n of the right side into the table.
func (p *project) signal(t *testing.T, n int) {
	t.Helper()
	if _, err := p.db.Pool.Exec(t.Context(), `insert into public.signals (id, rev, key, time, amount)
		values ('r' || $1::int, 1, 'k' || $1::int, '2026-01-10 12:00Z'::timestamptz
			+ make_interval(mins => $1::int), 1.50)`, n); err != nil {
		t.Fatal(err)
	}
}

func (p *project) appendGzip(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.Create(filepath.Join(p.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := gzip.NewWriter(f)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSeveralSourcesOfEachSide(t *testing.T) {
	t.Parallel()
	p := newProject(t, mixedConfig)
	if _, err := p.db.Pool.Exec(t.Context(), signalsTable); err != nil {
		t.Fatal(err)
	}
	var old strings.Builder
	p.append(t, "shop.csv", "time;id;key;rev\n")
	p.append(t, "web.ndjson", "")
	p.append(t, "right.ndjson", "")
	var want []string
	add := func(n int) {
		switch n % 3 {
		case 0:
			old.WriteString(event("l", n))
		case 1:
			p.append(t, "shop.csv", fmt.Sprintf("2026-01-10T12:%02d:00Z;l%d;k%d;1\n", n, n, n))
		case 2:
			p.append(t, "web.ndjson", event("l", n))
		}
		if n%2 == 0 {
			p.signal(t, n)
		} else {
			p.append(t, "right.ndjson", event("r", n))
		}
		want = append(want, fmt.Sprintf("matched l%d/1 r%d/1", n, n))
	}
	for n := range 30 {
		add(n)
	}
	p.appendGzip(t, "old.ndjson.gz", old.String())
	p.tally(t, "run", "--until-end")
	p.expect(t, "active rows", activeRows, want...)
	for n := 31; n < 60; n += 2 {
		if n%3 != 0 { // a compressed file doesn't grow
			add(n)
		}
	}
	p.tally(t, "run", "--until-end", "--seal")
	p.expect(t, "active rows of both runs", activeRows, want...)
	p.expect(t, "sources", `select side || ' ' || source from tally.lag where source <> 'quarantine'`,
		"left old.ndjson.gz", "left shop.csv", "left web.ndjson", "right public.signals",
		"right right.ndjson")
	p.expect(t, "counts", `select concat_ws(' ', sum(accepted), sum(read)) from tally.epochs`,
		fmt.Sprintf("%d %d", 2*len(want), 2*len(want)))
	p.refused(t, exitUsage, []string{"old.ndjson.gz", "--until-end"}, "run")
}

// TestSilentSourceHoldsTheWatermark also shows that idle_after lets it go.
func TestSilentSourceHoldsTheWatermark(t *testing.T) {
	t.Parallel()
	for name, idle := range map[string]string{"holds": "", "lets go": ", idle_after: 200ms"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := strings.Replace(fmt.Sprintf(liveConfig, idle), "{type: file, path: left.ndjson}",
				"[{type: file, path: left.ndjson}, {type: file, path: silent.ndjson}]", 1)
			p := newProject(t, config)
			p.append(t, "silent.ndjson", event("s", 0))
			p.append(t, "left.ndjson", event("l", 1))
			p.append(t, "right.ndjson", event("r", 0)+event("r", 59))
			run := p.live(t)
			p.waitFor(t, "all is read", "select coalesce(sum(read), 0)::text "+
				"from tally.epochs", "4")
			p.append(t, "left.ndjson", event("l", 59))
			// The horizon of l1 is 12:16.
			rows, watermark := []string{"matched s0/1 r0/1", "matched l59/1 r59/1"}, "12:00"
			if name == "lets go" {
				rows, watermark = append(rows, "final l1/1 -"), "12:59"
			}
			p.waitFor(t, "active rows", activeRows, rows...)
			p.waitFor(t, "watermark", `select to_char(watermark at time zone 'UTC', 'HH24:MI')
				from tally.shard`, watermark)
			only := "select count(*)::text from tally.epoch where sources::jsonb @> " +
				`'[{"source": "silent.ndjson", "idle": true}]'`
			if idle := p.lines(t, only)[0]; (idle != "0") != (name == "lets go") {
				t.Errorf("%s epochs say that the source is idle", idle)
			}
			if code := run.stop(); code != exitDone {
				t.Errorf("exit %d: %s", code, run.stderr)
			}
		})
	}
}
