package main

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// settling is the state of the results that lateFacts change, in one statement.
const (
	settling = `select string_agg(concat(left_id, '/', left_revision, ' ', right_id), ', '
		order by left_id collate "C", left_revision, right_id collate "C")
		from tally.results where left_id in ('l3', 'l14', 'l25', 'l41') or right_id = 'r14'`
	unsettled = "l14/1 r14, l25/1 , l3/1 r3, l41/1 r41"
	settledTo = "l14/2 r16, l25/1 r25, l3/2 r3, l41/1 , / r14"
)

// watch reads the results again and again until the function that it returns is called, which gives
// the states that were seen, in order.
func (l *ledger) watch(t *testing.T) (seen func() []string) {
	t.Helper()
	ended := make(chan struct{})
	var states []string
	var group sync.WaitGroup
	group.Go(func() {
		for last := false; ; {
			var state string
			if err := l.db.Pool.QueryRow(t.Context(), settling).Scan(&state); err != nil {
				t.Errorf("read the results: %v", err)
				return
			}
			if len(states) == 0 || states[len(states)-1] != state {
				states = append(states, state)
			}
			if last {
				return
			}
			select {
			case <-ended:
				last = true
			case <-time.After(time.Millisecond):
			}
		}
	})
	return func() []string { close(ended); group.Wait(); return states }
}

// grow adds events from number n on until the function that it returns is called, which gives the
// number of the next.
func (l *ledger) grow(t *testing.T, n int) (stop func() int) {
	t.Helper()
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for ; ; n++ {
			l.fill(t, n, n+1)
			select {
			case <-ended:
				n++
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return func() int { close(ended); group.Wait(); return n }
}

func (l *ledger) sawOldThenNew(t *testing.T, seen []string) {
	t.Helper()
	if len(seen) != 2 || seen[0] != unsettled || seen[1] != settledTo {
		t.Errorf("a reader saw\n%s", strings.Join(seen, "\n"))
	}
}

// TestRebuildUnderALiveRun: the run goes on through the promotion, with events that arrive all the
// while.
func TestRebuildUnderALiveRun(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"full":     {"rebuild", "--auto"},
		"interval": {"rebuild", "--auto", "--corrections"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t, ledgerConfig+"epoch: {max_events: 20, max_delay: 5ms}\n")
			l.settled(t)
			run, seen, stop := l.live(t), l.watch(t), l.grow(t, 201)
			l.prints(t, exitDone, []string{"changes, 4 corrections resolved"}, args...)
			n := stop()
			l.sawOldThenNew(t, seen())
			l.close(t, n)
			l.waitFor(t, "the run goes on", "select right_id from tally.results where left_id = 'l"+
				strconv.Itoa(n)+"'", "r"+strconv.Itoa(n))
			if code := run.stop(); code != exitDone {
				t.Errorf("exit %d\n%s", code, run.stderr)
			}
			l.expect(t, "corrections", "select distinct status from tally.corrections", "resolved")
			l.close(t, n+100)
			l.tally(t, "run", "--until-end")
			l.equalsOracle(t, "in the end")
			l.verifies(t)
		})
	}
}

// TestRebuildSurvivesKills kills every step while events arrive. TALLY_SEED replays the choices.
func TestRebuildSurvivesKills(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("TALLY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TALLY_SEED: %v", err)
		}
	}
	t.Logf("replay with TALLY_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	l := newLedger(t, ledgerConfig+"epoch: {max_events: 20, max_delay: 5ms}\nlease_for: 300ms\n")
	l.settled(t)
	run, seen, stop := l.start(t, "run"), l.watch(t), l.grow(t, 201)
	l.killed(t, rng, "rebuild", "--auto")
	if len(l.lines(t, candidateRows)) == 0 { // it was killed before it had begun
		l.tally(t, "rebuild", "start")
	}
	for range 4 {
		args := []string{"rebuild", "run", "--follow"}
		if l.killed(t, rng, args[:2+rng.IntN(2)]...); rng.IntN(2) == 0 {
			run.kill(t)
			run = l.start(t, "run")
		}
	}
	follow := l.start(t, "rebuild", "run", "--follow")
	for deadline := time.Now().Add(time.Minute); ; {
		code, stdout, stderr := l.execute(t, "rebuild", "validate")
		if code == exitDone {
			code, stdout, stderr = l.execute(t, "rebuild", "promote")
		}
		if code == exitDone {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is not promoted within a minute: exit %d\n%s%s", code, stdout, stderr)
		}
	}
	if err := <-follow.done; err != nil {
		t.Errorf("the build ends with %v\n%s", err, &follow.stderr)
	}
	n := stop()
	l.sawOldThenNew(t, seen())
	l.close(t, n)
	l.waitFor(t, "the run goes on", "select right_id from tally.results where left_id = 'l"+
		strconv.Itoa(n)+"'", "r"+strconv.Itoa(n))
	run.terminate(t)
	t.Log(n, "events;", l.lines(t, `select concat(generation_id, ': ', count(*), ' attempts, ',
		count(*) filter (where outcome is null), ' killed') from tally.attempt group by generation_id`))
	l.expect(t, "corrections", "select distinct status from tally.corrections", "resolved")
	l.close(t, n+100)
	l.tally(t, "run", "--until-end")
	l.equalsOracle(t, "in the end")
	l.verifies(t)
}

const candidateRows = "select generation_id::text from tally.generation where status = 'candidate'"

// killed starts a process and kills it after some epochs of a candidate, or sooner; a rebuild that
// ends before is as good.
func (l *ledger) killed(t *testing.T, rng *rand.Rand, args ...string) {
	t.Helper()
	built := "select count(*)::text from tally.epoch where generation_id > 1"
	before, err := strconv.Atoi(l.lines(t, built)[0])
	if err != nil {
		t.Fatal(err)
	}
	process := l.start(t, args...)
	more := rng.IntN(5)
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
		if now, err := strconv.Atoi(l.lines(t, built)[0]); err != nil || now >= before+more {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	_ = process.cmd.Process.Kill()
	<-process.done
	if text := process.stderr.String(); strings.Contains(text, "tally: ") {
		t.Errorf("tally %s: %s", strings.Join(args, " "), text)
	}
}
