package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// rebuilt is a reconciliation with a generation that serves and a candidate that differs from it: it
// has not seen one epoch, and has one more.
type rebuilt struct {
	*bundle
	name            string
	base, candidate int32
}

func rebuild(t *testing.T, b *bundle, name string, shards int) *rebuilt {
	t.Helper()
	return rebuildWithin(t, b, name, shards, stream.Range{})
}

// rebuildWithin does so over an interval, which need not be one.
func rebuildWithin(
	t *testing.T, b *bundle, name string, shards int, within stream.Range,
) *rebuilt {
	t.Helper()
	r := &rebuilt{bundle: &bundle{Store: b.Store, db: b.db}, name: name}
	r.base = r.registerRule(t, shards)
	r.generation = r.base
	h := r.take(t, b.Store)
	epochs := []*stream.Delta{busyDelta(1), busyDelta(2), busyDelta(3)}
	commit(t, h, epochs...)
	if within != (stream.Range{}) {
		commit(t, h, closing(epochs))
	}
	r.candidate = r.begin(t, shards, within)
	r.generation = r.candidate
	h = r.take(t, b.Store)
	// The same events as in the base but for those of its third epoch, and others in their place.
	other := busyDelta(3)
	rename(other)
	epochs = []*stream.Delta{busyDelta(1), busyDelta(2), other}
	commit(t, h, epochs...)
	if within != (stream.Range{}) {
		commit(t, h, closing(epochs))
	}
	r.pass(t)
	return r
}

// closing lets everything leave the buffer that busy epochs left there: the rows of each but the lone
// ones, which the next one replaced.
func closing(epochs []*stream.Delta) *stream.Delta {
	newest := epochs[len(epochs)-1]
	d := delta(newest.Epoch + 1)
	d.WatermarkAfter = 200 * tick
	for _, e := range epochs {
		for i := range e.Added[:2] {
			d.Expired = append(d.Expired, &e.Added[i])
		}
	}
	lone := &newest.Added[2]
	d.Expired = append(d.Expired, lone)
	d.Changes = []stream.Change{
		moved(only(*lone, stream.Provisional), stream.Final, stream.CauseHorizonPassed),
	}
	d.Counts.Expired, d.Counts.Final = int64(len(d.Expired)), 1
	return d
}

// rename gives the events that an epoch adds other ids.
func rename(d *stream.Delta) {
	ids := map[string]string{}
	for i := range d.Added {
		id := d.Added[i].ID
		ids[id] = "other " + id
		d.Added[i].ID = ids[id]
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		changed := false
		for _, m := range []*stream.Member{&c.Left, &c.Right} {
			if id, is := ids[m.ID]; is {
				m.ID, changed = id, true
			}
		}
		if changed {
			c.MatchID = identity(c.Left.ID, c.Right.ID)
		}
	}
}

// registration is that of both generations.
func (r *rebuilt) registration(shards int) store.Registration {
	return store.Registration{
		Name: r.name, RuleVersion: "v1", Shards: shards,
		Rule: []byte(`{"join": "full", "before_us": 1000000, "after_us": 1000000}`),
	}
}

func (r *rebuilt) registerRule(t *testing.T, shards int) int32 {
	t.Helper()
	generation, err := r.Register(t.Context(), r.registration(shards))
	if err != nil {
		t.Fatal(err)
	}
	return generation
}

func (r *rebuilt) begin(t *testing.T, shards int, within stream.Range) int32 {
	t.Helper()
	states, err := r.Standing(t.Context(), r.base)
	if err != nil {
		t.Fatal(err)
	}
	generation, err := r.Begin(t.Context(), store.NewCandidate{
		Registration: r.registration(shards),
		Base:         r.base, Interval: within,
		CatchUp: stream.CatchUp{Watermark: stream.NegInfinity, Partitions: states[0].Progress},
	})
	if err != nil {
		t.Fatal(err)
	}
	return generation
}

// pass puts a validation on record that nothing was wrong with.
func (r *rebuilt) pass(t *testing.T) {
	t.Helper()
	c := contest{
		bundle:    &bundle{Store: r.Store, db: r.db, generation: r.base},
		candidate: r.candidate,
	}
	c.pass(t)
}

func (r *rebuilt) promotion(candidate int32) store.Promotion {
	return store.Promotion{Reconciliation: r.name, Candidate: candidate, Worker: "host/1"}
}

func (r *rebuilt) promote(t *testing.T, candidate int32) store.Promoted {
	t.Helper()
	done, err := r.Promote(t.Context(), r.promotion(candidate))
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// served gives what the views show: the active results, and what somebody has who followed the history.
func (r *rebuilt) served(t *testing.T) (shown, followed string) {
	t.Helper()
	lines := func(sql string) []string {
		rows, err := r.db.Pool.Query(t.Context(), sql, r.name)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var list []string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			list = append(list, line)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		return list
	}
	now := lines("select match_id || ' ' || status from tally.results where reconciliation = $1")
	status := map[string]string{}
	last := ""
	for _, line := range lines(`select format('%s %s %s %s %s', match_id, coalesce(from_status, '-'),
			to_status, reason, lpad(epoch::text, 9, '0'))
		from tally.result_history where reconciliation = $1 order by shard, epoch, ordinal`) {
		f := strings.Fields(line)
		id, from, to := f[0], f[1], f[2]
		if was := status[id]; from != "-" && was != from || from == "-" && active(was) {
			t.Fatalf("history: %s, but it was %q (after %s)", line, was, last)
		}
		status[id], last = to, line
	}
	var then []string
	for id, s := range status {
		if active(s) {
			then = append(then, id+" "+s)
		}
	}
	slices.Sort(now)
	slices.Sort(then)
	return strings.Join(now, "\n"), strings.Join(then, "\n")
}

func active(status string) bool { return stream.Status(status).Active() }

func (r *rebuilt) wantServed(t *testing.T, want string) {
	t.Helper()
	shown, followed := r.served(t)
	if shown != want {
		t.Errorf("the views show\n%s\nwant\n%s", shown, want)
	}
	if followed != want {
		t.Errorf("who followed the history has\n%s\nwant\n%s", followed, want)
	}
	for _, generation := range []int32{r.base, r.candidate} {
		r.generation = generation
		r.wantWhole(t, true)
	}
}

// actives gives the active results of a generation.
func (r *rebuilt) actives(t *testing.T, generation int32) string {
	t.Helper()
	var text string
	err := r.db.Pool.QueryRow(t.Context(), `select string_agg(encode(match_id, 'hex') || ' ' || status,
		E'\n' order by encode(match_id, 'hex')) from tally.match where generation_id = $1
		and status in ('matched', 'provisional', 'final')`, generation).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPromoteAndBack lets a candidate serve, and then what served before again.
func TestPromoteAndBack(t *testing.T) {
	t.Parallel()
	r := rebuild(t, setup(t), "payments rebuilt", 2)
	before, after := r.actives(t, r.base), r.actives(t, r.candidate)
	r.wantServed(t, before)
	done := r.promote(t, r.candidate)
	if done.Epoch != 4 || done.Changes != 4 {
		t.Errorf("promoted %+v, want epoch 4 with 4 changes", done)
	}
	r.wantServed(t, after)
	again := r.promote(t, r.candidate)
	if again.Changes != 0 {
		t.Errorf("promoted again: %+v", again)
	}
	r.wantServed(t, after)
	if _, err := r.Take(t.Context(), r.base, 0, "host/1"); !errors.Is(err, store.ErrRetired) {
		t.Errorf("take a shard of what retired: %v", err)
	}
	r.generation = r.candidate
	h := r.take(t, r.Store)
	d := busyDelta(5)
	d.Changes = d.Changes[len(d.Changes)-2:]
	d.Retired, d.Counts.Superseded, d.Counts.Buffered = nil, 0, 10
	d.WatermarkBefore = 3 * tick
	commit(t, h, d)
	r.wantServed(t, r.actives(t, r.candidate))
	if done := r.promote(t, r.base); done.Epoch != 6 {
		t.Errorf("serves again with epoch %d, want 6", done.Epoch)
	}
	r.wantServed(t, before)
}

// TestPromoteRefuses: what is not validated, or against what serves no more, is not promoted.
func TestPromoteRefuses(t *testing.T) {
	t.Parallel()
	r := rebuild(t, setup(t), "payments rebuilt", 2)
	serves := r.actives(t, r.base)
	for _, c := range []struct {
		name, before, after string
		want                error
	}{
		{
			"failed", "update tally.validation set passed = false where generation_id = $1",
			"update tally.validation set passed = true where generation_id = $1", store.ErrNotValidated,
		},
		{
			"of another base", "update tally.validation set base = $1 where generation_id = $1",
			fmt.Sprint("update tally.validation set base = ", r.base, " where generation_id = $1"),
			store.ErrNotValidated,
		},
		{
			"still being built", `update tally.generation set catch_up =
				'{"watermark": "infinity", "partitions": []}' where generation_id = $1`,
			`update tally.generation set catch_up = '{"watermark": "-infinity", "partitions": []}'
				where generation_id = $1`, store.ErrNotReady,
		},
		{
			"abandoned", "update tally.generation set status = 'abandoned' where generation_id = $1",
			"update tally.generation set status = 'candidate' where generation_id = $1", store.ErrNotReady,
		},
	} {
		r.exec(t, c.before, r.candidate)
		if _, err := r.Promote(t.Context(), r.promotion(r.candidate)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		r.exec(t, c.after, r.candidate)
	}
	behind := errors.New("behind")
	p := r.promotion(r.candidate)
	p.Ready = func(context.Context, []store.State, []store.State) error { return behind }
	if _, err := r.Promote(t.Context(), p); !errors.Is(err, behind) {
		t.Error(err)
	}
	r.wantServed(t, serves)
	r.promote(t, r.candidate)
}

// TestPromoteBrokenAtEveryStatement: whatever breaks, readers see what served before or the new, and
// the same promotion again finishes it.
func TestPromoteBrokenAtEveryStatement(t *testing.T) {
	t.Parallel()
	const statements = 17
	breakEverywhere(t, 2*statements-1, func(
		t *testing.T, b *bundle, s *store.Store, br *breaker, name string,
	) {
		r := rebuild(t, b, name, 2)
		before, after := r.actives(t, r.base), r.actives(t, r.candidate)
		_, err := s.Promote(br.arm(t), r.promotion(r.candidate))
		where := br.disarm()
		if (err == nil) != (where == "" || where == "after commit") {
			t.Fatalf("broken %s: %v", where, err)
		}
		if err != nil {
			r.wantServed(t, before)
			r.promote(t, r.candidate)
		}
		r.wantServed(t, after)
	})
}

// TestMergeBrokenAtEveryStatement does the same to the merge of an interval.
func TestMergeBrokenAtEveryStatement(t *testing.T) {
	t.Parallel()
	const statements = 17
	breakEverywhere(t, 2*statements-1, func(
		t *testing.T, b *bundle, s *store.Store, br *breaker, name string,
	) {
		r := rebuildWithin(t, b, name, 2, stream.Range{From: 4 * tick, To: 8 * tick})
		before, after := r.actives(t, r.base), r.actives(t, r.candidate)
		_, err := s.Promote(br.arm(t), r.promotion(r.candidate))
		where := br.disarm()
		if (err == nil) != (where == "" || where == "after commit") {
			t.Fatalf("broken %s: %v", where, err)
		}
		if err != nil {
			r.wantServed(t, before)
			r.promote(t, r.candidate)
		}
		r.wantServed(t, after)
	})
}

// TestMergeRefusesOtherRevision has taken, since the interval was compared, another revision of an
// event outside it.
func TestMergeRefusesOtherRevision(t *testing.T) {
	t.Parallel()
	revised := leftRow(2, "k3")
	revised.ID, revised.Revision = "l3", 2
	merged := usual().without("l3", "r4").with(only(revised, stream.Final))
	for name, base := range map[string]*stand{"meanwhile": usual(), "not": usual().without("l3")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := setupContest(t, base, merged)
			c.exec(t, interval+" where status = 'candidate'")
			c.pass(t)
			done, err := c.Promote(t.Context(), store.Promotion{
				Reconciliation: "payments", Candidate: c.candidate, Worker: "host/1",
			})
			if name == "meanwhile" {
				if !errors.Is(err, store.ErrNotReady) || !strings.Contains(err.Error(), "revision 1") {
					t.Errorf("merged: %+v, %v", done, err)
				}
			} else if err != nil || done.Changes != 1 {
				t.Errorf("merged %+v, %v; want one change", done, err)
			}
		})
	}
}
