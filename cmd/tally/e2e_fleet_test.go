package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a run in a process of its own.
type process struct {
	cmd    *exec.Cmd
	stderr strings.Builder
	done   chan error
}

func (p *project) start(t *testing.T, args ...string) *process {
	t.Helper()
	r := &process{cmd: p.command(args...), done: make(chan error, 1)}
	r.cmd.Stderr = &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

func (r *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("%s: %v\n%s", signal, err, &r.stderr)
	}
}

// kill ends the process, which must not have ended by itself.
func (r *process) kill(t *testing.T) {
	t.Helper()
	_ = r.cmd.Process.Kill()
	err := <-r.done
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() >= 0 {
		t.Fatalf("the run ended by itself: %v\n%s", err, &r.stderr)
	}
}

// terminate ends the process, which must end well.
func (r *process) terminate(t *testing.T) {
	t.Helper()
	r.signal(t, syscall.SIGTERM)
	if err := <-r.done; err != nil {
		t.Fatalf("the run ends with %v\n%s", err, &r.stderr)
	}
}

const outcomes = "select coalesce(outcome, 'none') from tally.attempt"

func TestASecondRunWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, ""))
	first := p.live(t)
	p.both(t, 0)
	p.waitFor(t, "the first joins", activeRows, "matched l0/1 r0/1")
	second := p.start(t, "run")
	once := p.start(t, "run", "--until-end")
	time.Sleep(1500 * time.Millisecond) // more than one look at the leases
	p.both(t, 1)
	p.waitFor(t, "the first goes on", activeRows, "matched l0/1 r0/1", "matched l1/1 r1/1")
	p.expect(t, "attempts", outcomes, "none")
	once.kill(t)
	if code := first.stop(); code != exitDone {
		t.Errorf("the first exits with %d: %s", code, first.stderr)
	}
	p.both(t, 2)
	p.waitFor(t, "the second takes over what was released", activeRows, "matched l0/1 r0/1",
		"matched l1/1 r1/1", "matched l2/1 r2/1")
	second.terminate(t)
	if said := strings.Count(second.stderr.String(), "another worker has the shard"); said != 1 {
		t.Errorf("it was said %d times that another worker has the shard:\n%s", said, &second.stderr)
	}
	p.expect(t, "outcomes", outcomes, "stopped", "stopped")
	p.expect(t, "records read once", "select sum(read)::text from tally.epochs", "6")
}

// TestAPausedRunComesBack stops a process for longer than its lease.
func TestAPausedRunComesBack(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, "")+"lease_for: 300ms\n")
	paused := p.start(t, "run")
	p.both(t, 0)
	p.waitFor(t, "the first joins", activeRows, "matched l0/1 r0/1")
	paused.signal(t, syscall.SIGSTOP)
	other := p.live(t)
	p.both(t, 1)
	p.waitFor(t, "the other takes over", activeRows, "matched l0/1 r0/1", "matched l1/1 r1/1")
	paused.signal(t, syscall.SIGCONT)
	p.both(t, 2)
	p.waitFor(t, "the paused run sees that it lost its lease", outcomes+" where outcome = 'fenced'",
		"fenced")
	if code := other.stop(); code != exitDone {
		t.Errorf("the other exits with %d: %s", code, other.stderr)
	}
	p.both(t, 3)
	p.waitFor(t, "the paused run goes on", activeRows, "matched l0/1 r0/1", "matched l1/1 r1/1",
		"matched l2/1 r2/1", "matched l3/1 r3/1")
	paused.terminate(t)
	p.expect(t, "records read once", "select sum(read)::text from tally.epochs", "8")
}

const fleetConfig = `name: fleet
shards: 8
lease_for: 2s
rule: {version: v1, join: full, before: 20s, after: 60s, lateness: 1h}
left:
  {source: {type: file, path: left.ndjson}, id: id, revision: rev, key: key, time: time,
    deleted: gone}
right:
  {source: {type: file, path: right.ndjson}, id: id, revision: rev, key: key, time: time,
    deleted: gone}
epoch: {max_events: 300, max_delay: 20ms}
`

// TestReleasedRecordsFindTheirShard: one without a key is set aside by any shard, and joined by that
// of the key it was given.
func TestReleasedRecordsFindTheirShard(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, "")+"shards: 8\n")
	const records = 6
	for n := range records {
		p.append(t, "left.ndjson", strings.Replace(event("l", n), `"key"`, `"kee"`, 1))
		p.append(t, "right.ndjson", event("r", n))
	}
	p.tally(t, "run", "--until-end")
	set := p.lines(t, "select position || ' ' || quarantine_id from tally.quarantined")
	if len(set) != records {
		t.Fatalf("set aside are %q", set)
	}
	var want []string
	line := len(event("l", 0))
	for n := range records {
		for _, at := range set {
			position, id, _ := strings.Cut(at, " ")
			if position == strconv.Itoa((n+1)*line) {
				p.release(t, id, event("l", n))
			}
		}
		want = append(want, fmt.Sprintf("matched l%d/1 r%d/1", n, n))
	}
	p.tally(t, "run", "--until-end")
	p.expect(t, "active rows", activeRows, want...)
	p.expect(t, "statuses", "select distinct status from tally.quarantined", "resolved")
}

// stormEvent is one event of the fleet test, as the oracle sees it.
type stormEvent struct {
	side, id, key string
	rev           int
	at            time.Time
	gone          bool
}

// storm makes events of both sides with few keys, so that they match many times and move between
// shards when they are revised.
type storm struct {
	rng  *rand.Rand
	n    int
	all  []stormEvent
	last map[string]stormEvent
}

func (s *storm) next() stormEvent {
	s.n++
	at := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC).Add(time.Duration(s.n) * time.Second)
	e := stormEvent{
		side: []string{"left", "right"}[s.rng.IntN(2)], id: strconv.Itoa(s.n), rev: 1,
		key: "k" + strconv.Itoa(s.n/40+s.rng.IntN(20)),
		at:  at.Add(-time.Duration(s.rng.IntN(60)) * time.Second),
	}
	if s.n > 50 && s.rng.IntN(6) == 0 { // a revision of one of the newest, some with another key
		old := s.all[len(s.all)-1-s.rng.IntN(50)]
		newest := s.last[old.side+old.id]
		e.side, e.id, e.rev, e.gone = newest.side, newest.id, newest.rev+1, s.rng.IntN(8) == 0
		if s.rng.IntN(2) == 0 {
			e.key = newest.key
		}
	}
	s.all = append(s.all, e)
	s.last[e.side+e.id] = e
	return e
}

func (e stormEvent) line() string {
	return fmt.Sprintf(`{"id":%q,"rev":%d,"key":%q,"time":%q,"gone":%t}`+"\n", e.id, e.rev, e.key,
		e.at.Format(time.RFC3339), e.gone)
}

// oracle computes the active rows of a sealed run over all events by SQL.
func (s *storm) oracle(t *testing.T, p *project) []string {
	t.Helper()
	var sides, ids, keys []string
	var revs []int
	var ats []time.Time
	var gone []bool
	for _, e := range s.all {
		sides, ids, keys, revs = append(sides, e.side), append(ids, e.id), append(keys, e.key),
			append(revs, e.rev)
		ats, gone = append(ats, e.at), append(gone, e.gone)
	}
	return p.lines(t, `with raw as (
		select side, id, key, rev, at, gone
		from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[],
			$6::boolean[]) as x (side, id, key, rev, at, gone)
	), latest as (
		select distinct on (side, id) side, id, key, rev, at, gone from raw order by side, id, rev desc
	), l as (select id, key, rev, at from latest where side = 'left' and not gone),
	r as (select id, key, rev, at from latest where side = 'right' and not gone),
	pairs as (
		select l.id as l, l.rev as lr, r.id as r, r.rev as rr from l join r on l.key = r.key
			and r.at between l.at - interval '20 s' and l.at + interval '60 s')
	select concat('matched ', l, '/', lr, ' ', r, '/', rr) from pairs
	union all select concat('final ', id, '/', rev, ' -') from l where id not in (select l from pairs)
	union all select concat('final - ', id, '/', rev) from r where id not in (select r from pairs)`,
		sides, ids, keys, revs, ats, gone)
}

// fleetSeconds is how long the storm lasts: two minutes where tests may take long.
func fleetSeconds(t *testing.T) time.Duration {
	seconds := 10
	if text := os.Getenv("TALLY_SEEDS"); text != "" {
		seeds, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("TALLY_SEEDS: %v", err)
		}
		seconds = min(max(seeds/80, 10), 120)
	}
	return time.Duration(seconds) * time.Second
}

// TestFleetSurvivesKills runs four processes over eight shards while events arrive, and kills one of
// them every few seconds. TALLY_SEED replays the events and the choices.
func TestFleetSurvivesKills(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("TALLY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TALLY_SEED: %v", err)
		}
	}
	t.Logf("replay with TALLY_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 8))
	events := &storm{rng: rand.New(rand.NewPCG(seed, 9)), last: map[string]stormEvent{}}
	p := newProject(t, fleetConfig)
	var fleet [4]*process
	for i := range fleet {
		fleet[i] = p.start(t, "run")
	}
	kills := 0
	nextKill := time.Now().Add(2 * time.Second)
	for end := time.Now().Add(fleetSeconds(t)); time.Now().Before(end); {
		text := map[string]string{}
		for range 20 {
			e := events.next()
			text[e.side] += e.line()
		}
		for side, lines := range text {
			p.append(t, side+".ndjson", lines)
		}
		time.Sleep(40 * time.Millisecond)
		if time.Now().After(nextKill) {
			i := rng.IntN(len(fleet))
			fleet[i].kill(t)
			fleet[i] = p.start(t, "run")
			kills++
			nextKill = time.Now().Add(time.Second + time.Duration(rng.IntN(2000))*time.Millisecond)
		}
	}
	// One that was killed last still has leases, and the one after it may not yet heed a signal.
	var alive []string
	for _, r := range fleet {
		alive = append(alive, strconv.Itoa(r.cmd.Process.Pid))
	}
	p.waitFor(t, "each process has its share", `select worker || '' from (select count(*) as worker
		from tally.shard where lease_until > clock_timestamp()
			and worker ~ '/(`+strings.Join(alive, "|")+`)-' group by worker) x`, "2", "2", "2", "2")
	for _, r := range fleet {
		r.terminate(t)
	}
	took := p.lines(t, `select count(*) || ' attempts, ' ||
		count(*) filter (where outcome is null) || ' killed, ' ||
		count(*) filter (where outcome = 'handed over') || ' handed over, ' ||
		count(*) filter (where outcome = 'fenced') || ' fenced, ' ||
		count(distinct worker) || ' workers' from tally.attempt`)
	p.tally(t, "run", "--until-end", "--seal")
	t.Logf("%d events, %d kills; %s", len(events.all), kills, took)
	want, got := events.oracle(t, p), p.lines(t, activeRows)
	if !slices.Equal(got, want) {
		t.Errorf("%d rows differ from the %d of SQL", len(got), len(want))
		for _, line := range difference(got, want) {
			t.Log(line)
		}
	}
	p.expect(t, "each shard has read every record once, in an unbroken chain", `select count(*)::text
		from (select shard, sum(read) as n, bool_and(parent_epoch = epoch - 1) as unbroken
			from tally.epoch group by shard) x
		where n = `+strconv.Itoa(len(events.all))+` and unbroken`, "8")
}

// difference lists up to 20 lines that only one of two sorted lists has.
func difference(got, want []string) (lines []string) {
	for _, line := range got {
		if _, found := slices.BinarySearch(want, line); !found {
			lines = append(lines, "too much: "+line)
		}
	}
	for _, line := range want {
		if _, found := slices.BinarySearch(got, line); !found {
			lines = append(lines, "missing: "+line)
		}
	}
	return lines[:min(len(lines), 20)]
}
