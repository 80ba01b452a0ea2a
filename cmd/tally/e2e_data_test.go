package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dataset is two real streams and what their reconciliation must give.
type dataset struct {
	name                       string
	left, right                string
	leftID, rightID            string
	leftKey, rightKey          string
	leftTime, rightTime        string
	after                      string
	pairs, leftOnly, rightOnly int
	// compare is the tolerance of the amounts, empty for none; equal and agree are pairs.
	compare      string
	equal, agree int
}

var datasets = []dataset{
	{
		name: "returns-10d", left: "rentals/rentals", right: "rentals/returns",
		leftID: "rental_id", rightID: "return_id", leftTime: "rented_at", rightTime: "returned_at",
		leftKey: "[inventory_id, customer_id]", rightKey: "[inventory_id, customer_id]",
		after: "10d", pairs: 15861, leftOnly: 183,
	},
	{
		name: "returns-7d", left: "rentals/rentals", right: "rentals/returns",
		leftID: "rental_id", rightID: "return_id", leftTime: "rented_at", rightTime: "returned_at",
		leftKey: "[inventory_id, customer_id]", rightKey: "[inventory_id, customer_id]",
		after: "7d", pairs: 11367, leftOnly: 4677, rightOnly: 4494,
	},
	{
		name: "payments-30d", left: "rentals/rentals", right: "rentals/payments",
		leftID: "rental_id", rightID: "payment_id", leftTime: "rented_at", rightTime: "paid_at",
		leftKey: "rental_id", rightKey: "rental_id",
		after: "30d", pairs: 16046, rightOnly: 3,
	},
	{
		name: "transfers-5d", left: "transfers/origin", right: "transfers/destination",
		leftID: "id", rightID: "id", leftTime: "booked_at", rightTime: "booked_at",
		leftKey: "transfer", rightKey: "transfer",
		after: "5d", pairs: 40332, leftOnly: 4994, rightOnly: 4994,
		compare: "5%", equal: 10260, agree: 37436,
	},
	{
		name: "transfers-21d", left: "transfers/origin", right: "transfers/destination",
		leftID: "id", rightID: "id", leftTime: "booked_at", rightTime: "booked_at",
		leftKey: "transfer", rightKey: "transfer",
		after: "21d", pairs: 45326,
	},
}

// TestRealData reconciles each dataset in one go, in small epochs, with a small cache, killed on
// its way, and over twenty runs of growing files: the rows are always the same.
func TestRealData(t *testing.T) {
	t.Parallel()
	if sharedFile(t, "data") == "" {
		return
	}
	for _, d := range datasets {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			plain := d.project(t, "")
			plain.tally(t, "run", "--until-end", "--seal")
			d.check(t, plain)
			want := plain.digest(t)
			for name, run := range map[string]func(*testing.T, *dataset) *project{
				"max_events 500":  runSmallEpochs,
				"cache_rows 1000": runSmallCache,
				"killed":          runKilled,
				"twenty runs":     runGrowing,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					p := run(t, &d)
					d.check(t, p)
					if got := p.digest(t); got != want {
						t.Errorf("the rows differ from those of a plain run: %s, want %s", got, want)
					}
				})
			}
		})
	}
}

func (d *dataset) project(t *testing.T, more string) *project {
	t.Helper()
	return d.projectOf(t, sharedFile(t, "data/"+d.left+".ndjson"),
		sharedFile(t, "data/"+d.right+".ndjson"), more)
}

func (d *dataset) projectOf(t *testing.T, left, right, more string) *project {
	t.Helper()
	compare := ""
	if d.compare != "" {
		compare = fmt.Sprintf(", compare: [{left: amount, right: amount, tolerance: %q}]", d.compare)
	}
	return newProject(t, fmt.Sprintf(`name: %s
rule: {version: v1, join: full, before: 0s, after: %s, lateness: 0s%s}
left: {source: {type: file, path: %q}, id: %s, key: %s, time: %s}
right: {source: {type: file, path: %q}, id: %s, key: %s, time: %s}
%s`, d.name, d.after, compare, left, d.leftID, d.leftKey, d.leftTime,
		right, d.rightID, d.rightKey, d.rightTime, more))
}

// check compares the counts with those of a plain SQL join over the same files.
func (d *dataset) check(t *testing.T, p *project) {
	t.Helper()
	want := []string{fmt.Sprintf("pair matched %d", d.pairs)}
	if d.leftOnly > 0 {
		want = append(want, fmt.Sprintf("left_only final %d", d.leftOnly))
	}
	if d.rightOnly > 0 {
		want = append(want, fmt.Sprintf("right_only final %d", d.rightOnly))
	}
	slices.Sort(want)
	got := p.lines(t, `select kind || ' ' || status || ' ' || count(*) from tally.results_final
		group by kind, status`)
	if !slices.Equal(got, want) {
		t.Fatalf("final rows are %q, want %q", got, want)
	}
	if d.compare == "" {
		return
	}
	got = p.lines(t, `select count(*) filter (where differences is null) || ' equal, '
		|| count(*) filter (where verdict = 'agree') || ' agree' from tally.results
		where kind = 'pair'`)
	if want := []string{fmt.Sprintf("%d equal, %d agree", d.equal, d.agree)}; !slices.Equal(got, want) {
		t.Errorf("compared pairs are %q, want %q", got, want)
	}
}

// digest sums up the active rows.
func (p *project) digest(t *testing.T) string {
	t.Helper()
	return p.lines(t, `select md5(string_agg(concat_ws(' ', match_id, status, verdict,
		differences::text), ',' order by match_id)) from tally.results`)[0]
}

func runSmallEpochs(t *testing.T, d *dataset) *project {
	p := d.project(t, "epoch: {max_events: 500}")
	p.tally(t, "run", "--until-end", "--seal")
	return p
}

func runSmallCache(t *testing.T, d *dataset) *project {
	p := d.project(t, "state: {cache_rows: 1000}")
	p.tally(t, "run", "--until-end", "--seal")
	return p
}

// runKilled kills the process ten times on its way. TALLY_SEED replays the waits.
func runKilled(t *testing.T, d *dataset) *project {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("TALLY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TALLY_SEED: %v", err)
		}
	}
	t.Logf("replay with TALLY_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	p := d.project(t, "lease_for: 300ms\nepoch: {max_events: 500}")
	for killed := 0; killed < 10; {
		epochs := p.epochs(t)
		cmd := p.command("run", "--until-end", "--seal")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		// It is killed somewhere in the epochs that follow a few more.
		p.waitForEpochs(t, epochs+rng.IntN(6), done)
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		err := <-done
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() >= 0 {
			t.Fatalf("after %d kills the run ended by itself: %v", killed, err)
		}
		killed++
	}
	p.tally(t, "run", "--until-end", "--seal")
	return p
}

func (p *project) epochs(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(p.lines(t, "select count(*)::text from tally.epoch")[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// waitForEpochs waits until there are more epochs than n, or the process has ended.
func (p *project) waitForEpochs(t *testing.T, n int, done chan error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for p.epochs(t) <= n {
		select {
		case err := <-done:
			done <- err
			return
		case <-time.After(2 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("no more than %d epochs within a minute", n)
		}
	}
}

// runGrowing runs twenty times over files that grow, each time to their present end.
func runGrowing(t *testing.T, d *dataset) *project {
	dir := t.TempDir()
	var whole [2][]byte
	var paths [2]string
	for i, name := range []string{d.left, d.right} {
		text, err := os.ReadFile(sharedFile(t, "data/"+name+".ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		whole[i], paths[i] = text, filepath.Join(dir, filepath.Base(name)+".ndjson")
	}
	p := d.projectOf(t, paths[0], paths[1], "")
	const runs = 20
	for run := 1; run <= runs; run++ {
		for i := range whole {
			end := len(whole[i]) * run / runs
			if run < runs {
				end = bytes.LastIndexByte(whole[i][:end], '\n') + 1
			}
			if err := os.WriteFile(paths[i], whole[i][:end], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := []string{"run", "--until-end"}
		if run == runs {
			args = append(args, "--seal")
		}
		if out := p.tally(t, args...); !strings.Contains(out, "records") {
			t.Fatalf("run %d printed %q", run, out)
		}
	}
	return p
}
