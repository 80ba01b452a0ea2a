package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// rebuilding is a base that has worked live, with corrections of its own, and what becomes of it
// in a rebuild.
type rebuilding struct {
	*candidacy
	name         string
	base, shards int32
	follower     follower
	done         rebuilds
}

// rebuilds counts what rebuilds went through; None those that had no interval to rebuild.
type rebuilds struct{ Settled, Changes, Accepted, Compared, Inside, Live, None int }

func (r *rebuilds) add(o rebuilds) {
	r.Settled += o.Settled
	r.Changes += o.Changes
	r.Accepted += o.Accepted
	r.Compared += o.Compared
	r.Inside += o.Inside
	r.Live += o.Live
	r.None += o.None
}

func newRebuilding(
	t *testing.T, db *testenv.Database, st *store.Store, seed uint64, shards int32,
) (*rebuilding, error) {
	c, err := newCandidacy(t, db, st, seed, shards, 3)
	if err != nil {
		return nil, err
	}
	r := &rebuilding{
		candidacy: c, shards: shards, base: c.register(t, "base", shards),
		name:     fmt.Sprintf("%s base %d", t.Name(), seed),
		follower: follower{cursor: map[int32]int64{}, status: map[string]string{}},
	}
	return r, r.check(t, r.base, shards)
}

// remember looks whether a generation forgets.
func (c *candidacy) remember(generation int32, deltas []*stream.Delta) {
	aside := map[string]bool{}
	for _, d := range deltas {
		for i := range d.Corrections {
			aside[placeOf(d.Corrections[i].Partition, d.Corrections[i].Position)] = true
		}
		highest := map[string]int64{}
		for i, p := range d.Progress {
			from, _ := strconv.Atoi(p.From)
			for _, r := range c.history.Lanes[i].Records[:from] {
				name := p.Side.String() + " " + r.Event.ID
				if !aside[placeOf(p.Partition, r.Position)] {
					highest[name] = max(highest[name], r.Event.Revision)
				}
			}
		}
		for i := range d.Added {
			e := &d.Added[i]
			known, read := highest[e.Side.String()+" "+e.ID]
			c.forgets[generation] = c.forgets[generation] || read && known > e.Revision
		}
	}
}

func placeOf(p stream.Partition, position string) string { return p.String() + "@" + position }

// begin begins a candidate where the base stands.
func (r *rebuilding) begin(
	t *testing.T, rule oracle.Rule, shards int32, within stream.Range,
) (*store.Generation, error) {
	states, err := r.store.Standing(t.Context(), r.base)
	if err != nil {
		return nil, err
	}
	if r.catchUp, err = reconcile.CatchUpOf(t.Context(), sourcesOf(r.seen.Lanes), states); err != nil {
		return nil, err
	}
	id, err := r.store.Begin(t.Context(), store.NewCandidate{
		Registration: store.Registration{
			Name: r.name, RuleVersion: rule.Version, Rule: ruleJSON(rule), Shards: int(shards),
		},
		Interval: within, Base: r.base, CatchUp: r.catchUp,
	})
	if err != nil {
		return nil, err
	}
	list, err := r.store.Generations(t.Context(), r.name)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(g store.Generation) bool { return g.ID == id })
	return &list[at], nil
}

// goOn lets a generation read the rest of the history live.
func (r *rebuilding) goOn(t *testing.T, generation, shards int32, catchUp *stream.CatchUp) error {
	for shard := range shards {
		deltas, err := r.run(t, generation, shard, shards, r.history.Lanes,
			func(cfg *reconcile.Config) {
				cfg.CatchUp, cfg.UntilEnd = catchUp, true
				cfg.MaxEvents = 1 + r.rng.IntN(8)
			})
		if err != nil {
			return fmt.Errorf("go on in shard %d of generation %d: %w", shard, generation, err)
		}
		r.remember(generation, deltas)
		r.done.Live += len(deltas)
	}
	r.seen = r.history
	return nil
}

// promote compares the candidate and promotes it.
func (r *rebuilding) promote(t *testing.T, g *store.Generation) error {
	ctx := t.Context()
	compared, err := r.store.Validate(ctx, g.ID)
	if err != nil {
		return err
	}
	excused, err := r.excused(ctx, g)
	switch {
	case err != nil:
		return err
	case compared.Passed:
	case excused:
		r.done.Accepted++
		if _, err := r.store.Accept(ctx, g.ID, "test", "live work was not the same"); err != nil {
			return err
		}
	default:
		return fmt.Errorf("validation does not pass: %d unexplained of\n%s", compared.Unexplained,
			described(compared.Differences))
	}
	sources := sourcesOf(r.history.Lanes)
	done, err := r.store.Promote(ctx, store.Promotion{
		Reconciliation: r.name, Candidate: g.ID, Worker: "test",
		Ready: func(ctx context.Context, base, candidate []store.State) error {
			if g.Kind == store.Interval {
				return nil
			}
			lags, err := reconcile.Reached(ctx, sources, base, candidate)
			if err == nil && lags != nil {
				err = fmt.Errorf("%s lags behind", lags)
			}
			return err
		},
		Settles: func(ctx context.Context, c *store.OpenCorrection) (bool, error) {
			return reconcile.Settles(ctx, sources, configOf(r.history.Rule, r.rng).Rule, g, c)
		},
	})
	r.done.Settled += int(done.Resolved)
	r.done.Changes += int(done.Changes)
	return err
}

// excused tells whether live work can have made a difference that no correction explains: what is
// late depends on the epochs, and live state forgets.
func (r *rebuilding) excused(ctx context.Context, g *store.Generation) (bool, error) {
	own, err := r.store.Corrections(ctx, g.ID)
	return len(own) > 0 || r.forgets[r.base] || r.forgets[g.ID], err
}

// serve is the promotion of what has served before.
func (r *rebuilding) serve(generation int32) store.Promotion {
	return store.Promotion{Reconciliation: r.name, Candidate: generation, Worker: "test"}
}

func described(list []store.Difference) string {
	var b strings.Builder
	for i := range list {
		d := &list[i]
		fmt.Fprintf(&b, "%s %s %s", d.Kind, d.What, d.Result)
		if d.LeftID != nil {
			fmt.Fprintf(&b, " left %s/%d", *d.LeftID, *d.LeftRevision)
		}
		if d.RightID != nil {
			fmt.Fprintf(&b, " right %s/%d", *d.RightID, *d.RightRevision)
		}
		fmt.Fprintf(&b, " %+v %+v, explained by %v\n", d.Base, d.Candidate, d.ExplainedBy)
	}
	return b.String()
}

// check verifies what is stored of a generation and compares its active rows with what they should
// be by the events that it has not set aside.
func (r *rebuilding) check(t *testing.T, generation, shards int32) error {
	if err := r.whole(t, generation, shards); err != nil {
		return err
	}
	got, err := active(t.Context(), r.db, generation)
	if err != nil {
		return err
	}
	want, unsure, err := r.expected(t.Context(), r.history.Rule, generation, shards)
	if err != nil || unsure || r.forgets[generation] {
		return err
	}
	r.done.Compared++
	if !slices.Equal(got, want) {
		return fmt.Errorf("active rows of generation %d are\n%q\nwant\n%q", generation, got, want)
	}
	return nil
}

func (r *rebuilding) whole(t *testing.T, generation, shards int32) error {
	for shard := range shards {
		report, err := r.store.Verify(t.Context(), generation, shard, true)
		if err == nil && len(report.Damage) > 0 {
			err = fmt.Errorf("shard %d of generation %d: %v", shard, generation, report.Damage)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expected gives one SQL join over what a generation has read and not set aside. unsure is true when
// one shard may have set aside what another one has accepted, so that the join cannot tell.
func (r *rebuilding) expected(
	ctx context.Context, rule oracle.Rule, generation, shards int32,
) (lines []string, unsure bool, err error) {
	open, err := r.store.Corrections(ctx, generation)
	if err != nil {
		return nil, false, err
	}
	states, err := r.store.Standing(ctx, generation)
	if err == nil {
		read := omit(r.seen, open)
		read.Rule = rule
		lines, err = r.standing(ctx, read, states)
	}
	return lines, shards > 1 && len(open) > 0, err
}

// omit takes what was set aside out of a history.
func omit(history *oracle.History, list []store.OpenCorrection) *oracle.History {
	aside := map[string]bool{}
	for i := range list {
		aside[placeOf(list[i].Partition, list[i].Position)] = true
	}
	left := *history
	left.Lanes = slices.Clone(left.Lanes)
	for i := range left.Lanes {
		lane := &left.Lanes[i]
		lane.Records = slices.DeleteFunc(slices.Clone(lane.Records), func(r stream.Record) bool {
			return aside[placeOf(lane.Partition, r.Position)]
		})
	}
	return &left
}

// standing gives one SQL join over a history, its unmatched events as final as the watermarks of
// their shards make them.
func (r *rebuilding) standing(
	ctx context.Context, history *oracle.History, states []store.State,
) ([]string, error) {
	all, err := batchJoin(ctx, r.db, history)
	if err != nil {
		return nil, err
	}
	events := map[string]stream.Event{}
	for _, lane := range history.Lanes {
		for _, r := range lane.Records {
			events[fmt.Sprintf("%s %s/%d", lane.Side, r.Event.ID, r.Event.Revision)] = r.Event
		}
	}
	var lines []string
	for _, line := range all {
		f := strings.Fields(line)
		if f[0] == string(stream.Final) {
			side, label := stream.Left, f[1]
			if label == "-" {
				side, label = stream.Right, f[2]
			}
			e := events[side.String()+" "+label]
			w := states[stream.ShardOf(e.Key, int32(len(states)))].Watermark
			f[0] = string(unmatched(&history.Rule, w, side, e.Time))
		}
		if f[0] != "" {
			lines = append(lines, strings.Join(f, " "))
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// served compares what the views show with the active rows of a generation, and with what somebody
// has who follows the history.
func (r *rebuilding) served(t *testing.T, generation int32) error {
	ctx := t.Context()
	shown, err := lines(ctx, r.db, `select match_id || ' ' || status from tally.results
		where reconciliation = $1 order by 1`, r.name)
	if err != nil {
		return err
	}
	stored, err := lines(ctx, r.db, `select encode(match_id, 'hex') || ' ' || status from tally.match
		where generation_id = $1 and status in ('matched', 'provisional', 'final') order by 1`,
		generation)
	if err != nil {
		return err
	}
	if !slices.Equal(shown, stored) {
		return fmt.Errorf("the views show\n%q\ngeneration %d has\n%q", shown, generation, stored)
	}
	if err := r.follower.follow(ctx, r.db, r.name); err != nil {
		return err
	}
	if has := r.follower.has(); !slices.Equal(shown, has) {
		return fmt.Errorf("the views show\n%q\nwho follows the history has\n%q", shown, has)
	}
	afresh := follower{cursor: map[int32]int64{}, status: map[string]string{}, byEpoch: true}
	if err := afresh.follow(ctx, r.db, r.name); err != nil {
		return fmt.Errorf("follow the history from its beginning: %w", err)
	}
	if has := afresh.has(); !slices.Equal(shown, has) {
		return errors.New("who follows the history from its beginning has something else")
	}
	return nil
}
