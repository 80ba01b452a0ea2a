package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

const (
	// promoteWait is how long a promotion waits for a candidate that follows to catch up.
	promoteWait = time.Minute
	// promoteShortWait is how long it waits for one that perhaps nobody works on.
	promoteShortWait = 5 * time.Second
	promotePause     = 50 * time.Millisecond
	// differencesShown bounds what is listed for people; validation has 1,000.
	differencesShown = 20
)

func (a *app) rebuildValidate(ctx context.Context, f *rebuildFlags) error {
	if f.accept && (f.by == "" || f.why == "") {
		return usageError(errors.New("--accept-differences: say who accepts them (--by) and why (--why)"))
	}
	return a.rebuilds(ctx, f, func(ctx context.Context, b *rebuilding) error {
		g, err := b.candidate(ctx)
		if err != nil {
			return err
		}
		compared, err := b.store.Validate(ctx, g.ID)
		if err != nil {
			return err
		}
		if !compared.Passed {
			err = &exitError{code: exitRefused}
		}
		if f.accept && err != nil {
			var accepted store.Comparison
			if accepted, err = b.store.Accept(ctx, g.ID, f.by, f.why); err == nil {
				compared = accepted
			}
		}
		if err := b.showComparison(&compared); err != nil {
			return err
		}
		return err
	})
}

// showComparison prints what differs: as JSON all that validation has of it, as CSV the totals.
func (a *app) showComparison(c *store.Comparison) error {
	if a.output == string(table.JSON) {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(c)
	}
	totals := &table.Table{Columns: []string{"by", "name", "serving", "candidate"}}
	for _, t := range c.Totals {
		if t.Base != t.Candidate || t.By != "day" || !a.forPeople() {
			totals.Add(t.By, t.Name, t.Base, t.Candidate)
		}
	}
	if err := a.show(totals); err != nil || !a.forPeople() {
		return err
	}
	refused := a.showRefused(c)
	if err := a.showDifferences(c); err != nil {
		return err
	}
	compared := "every active result"
	if c.Scope == store.FinalResults {
		compared = "the results that neither can change any more"
	}
	verdict := "passed"
	switch {
	case refused > 0:
		verdict = "NOT PASSED; nobody can accept that: tally rebuild run goes on reading what it has " +
			"not read, tally rebuild abandon gives it up"
	case c.AcceptedBy != "":
		verdict = fmt.Sprintf("NOT PASSED, accepted by %s: %s", c.AcceptedBy, c.AcceptedWhy)
	case !c.Passed:
		verdict = "NOT PASSED; tally rebuild validate --accept-differences --by NAME --why REASON lets " +
			"it be promoted all the same, tally rebuild abandon gives it up"
	}
	a.printf("\ncompared %s of generation %d (candidate) and %d: %d in both, %d only in the candidate, "+
		"%d only in what serves; %d differences explained, %d not: %s\n", compared, c.Generation, c.Base,
		c.InBoth, c.OnlyCandidate, c.OnlyBase, c.Explained, c.Unexplained, verdict)
	return nil
}

// showRefused prints what nobody can accept, and counts it.
func (a *app) showRefused(c *store.Comparison) (refused int) {
	for i := range c.Differences {
		d := &c.Differences[i]
		if d.Acceptable() {
			continue
		}
		if refused == 0 {
			a.printf("\n")
		}
		if refused++; refused <= differencesShown {
			a.printf("%s: %s\n", d.Kind, d.What)
		}
	}
	if refused > differencesShown {
		a.printf("and %d more, which the table validation holds\n", refused-differencesShown)
	}
	return refused
}

// showDifferences prints the results that differ, the unexplained first.
func (a *app) showDifferences(c *store.Comparison) error {
	t := &table.Table{Columns: []string{
		"difference", "result", "left", "right", "key", "serving", "candidate", "changed",
		"explained_by",
	}}
	for i := range c.Differences {
		d := &c.Differences[i]
		if !d.Acceptable() || len(t.Rows) == differencesShown {
			continue
		}
		t.Add(d.Kind, d.Result, memberOf(d.LeftID, d.LeftRevision),
			memberOf(d.RightID, d.RightRevision), d.Key, statusOf(d.Base), statusOf(d.Candidate),
			strings.Join(d.Changed, ", "), strings.Join(d.ExplainedBy, ", "))
	}
	if len(t.Rows) == 0 {
		return nil
	}
	a.printf("\n")
	err := a.show(t)
	if all := c.Explained + c.Unexplained; err == nil && all > differencesShown {
		a.printf("%d of %d; the table validation holds up to 1000, the view rebuild_changes all\n",
			len(t.Rows), all)
	}
	return err
}

func memberOf(id *string, revision *int64) any {
	if id == nil || revision == nil {
		return nil
	}
	return fmt.Sprintf("%s/%d", *id, *revision)
}

func statusOf(s *store.Said) any {
	if s == nil {
		return nil
	}
	return s.Status
}

func (a *app) rebuildPromote(ctx context.Context, f *rebuildFlags) error {
	return a.rebuilds(ctx, f, func(ctx context.Context, b *rebuilding) error {
		g, err := b.candidate(ctx)
		if err != nil {
			return err
		}
		return b.promote(ctx, g, promoteShortWait)
	})
}

// promote compares once more and switches. It waits so long for the candidate to catch up.
func (b *rebuilding) promote(ctx context.Context, g *store.Generation, wait time.Duration) error {
	compared, err := b.store.Validated(ctx, g.ID)
	if err != nil && !errors.Is(err, store.ErrNotValidated) {
		return err
	}
	if compared.AcceptedBy != "" {
		if err := b.undamaged(ctx, g); err != nil {
			return err
		}
	} else {
		if compared, err = b.store.Validate(ctx, g.ID); err != nil {
			return err
		}
		if !compared.Passed {
			if err := b.showComparison(&compared); err != nil {
				return err
			}
			return &exitError{code: exitRefused}
		}
	}
	var done store.Promoted
	for deadline := time.Now().Add(wait); ; {
		done, err = b.store.Promote(ctx, b.promotion(g))
		if !errors.Is(err, store.ErrNotReady) || time.Now().After(deadline) {
			break
		}
		select {
		case <-time.After(promotePause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	what := fmt.Sprintf("generation %d serves", g.ID)
	if g.Kind == store.Interval {
		what = fmt.Sprintf("generation %d is merged into %d", g.ID, g.Base)
	}
	b.printf("%s since epoch %d: %s, %s resolved\n", what, done.Epoch, count(done.Changes, "change"),
		count(done.Resolved, "correction"))
	return nil
}

// undamaged refuses a candidate that was damaged since its differences were accepted.
func (b *rebuilding) undamaged(ctx context.Context, g *store.Generation) error {
	for shard := range g.Shards {
		report, err := b.store.Verify(ctx, g.ID, shard, false)
		if err != nil {
			return err
		}
		if len(report.Damage) > 0 {
			return &exitError{code: exitRefused, err: fmt.Errorf("promote generation %d: %w", g.ID,
				&store.DamageError{Found: report.Damage})}
		}
	}
	return nil
}

func (b *rebuilding) promotion(g *store.Generation) store.Promotion {
	return store.Promotion{
		Reconciliation: b.config.Name, Candidate: g.ID, Worker: workerName(),
		Ready: func(ctx context.Context, base, candidate []store.State) error {
			if g.Kind == store.Interval {
				return nil
			}
			lags, err := reconcile.Reached(ctx, b.sources, base, candidate)
			if err == nil && lags != nil {
				err = fmt.Errorf("%w: what serves has read further of source %s; tally rebuild run goes on",
					store.ErrNotReady, lags)
			}
			return err
		},
		Settles: func(ctx context.Context, c *store.OpenCorrection) (bool, error) {
			return reconcile.Settles(ctx, b.sources, b.config.JoinRule(), g, c)
		},
	}
}

func (a *app) rebuildAbandon(ctx context.Context, f *rebuildFlags) error {
	return a.rebuilds(ctx, f, func(ctx context.Context, b *rebuilding) error {
		g, err := b.candidate(ctx)
		if err != nil {
			return err
		}
		if err := b.store.Abandon(ctx, g.ID); err != nil {
			return err
		}
		b.printf("generation %d is abandoned; tally generation purge %d deletes its rows\n", g.ID, g.ID)
		return nil
	})
}

// rebuild does all steps. What serves may go on meanwhile, so that the candidate is promoted while it
// follows, unless there is nothing to follow: an interval, sealed sources, or a compressed file.
func (a *app) rebuild(ctx context.Context, f *rebuildFlags) error {
	return a.rebuilds(ctx, f, func(ctx context.Context, b *rebuilding) error {
		generation, err := b.start(ctx)
		if err != nil || generation == 0 {
			return err
		}
		f.generation = generation
		g, err := b.candidate(ctx)
		if err != nil {
			return err
		}
		p := newProgress(a)
		stop := p.show(ctx)
		defer stop()
		if g.Kind == store.Full && g.CatchUp.Watermark != stream.Infinity {
			err := b.follow(ctx, g, p)
			if !errors.Is(err, stream.ErrUnusable) {
				return err
			}
			b.logger.Debug("not every source can be followed", "error", err)
		}
		if err := b.build(ctx, g, false, p); err != nil {
			return err
		}
		stop()
		return b.promote(ctx, g, promoteShortWait)
	})
}

// follow builds the candidate beside what serves until it has caught up, and promotes it meanwhile.
func (b *rebuilding) follow(ctx context.Context, g *store.Generation, p *progress) error {
	running, end := context.WithCancel(ctx)
	built := make(chan error, 1)
	go func() { built <- b.build(running, g, true, p) }()
	err := b.caughtUp(ctx, g, built)
	if err == nil {
		err = b.promote(ctx, g, promoteWait)
	}
	end()
	return errors.Join(err, <-built)
}

// caughtUp waits until the candidate is released and has read as far as what serves.
func (b *rebuilding) caughtUp(
	ctx context.Context, g *store.Generation, built chan error,
) error {
	for {
		select {
		case err := <-built:
			built <- nil
			if err == nil {
				err = errors.New("the candidate was settled by somebody else")
			}
			return err
		case <-time.After(promotePause):
		}
		base, err := b.store.Standing(ctx, g.Base)
		if err != nil {
			return err
		}
		candidate, err := b.store.Standing(ctx, g.ID)
		if err != nil {
			return err
		}
		if held(candidate, g) {
			continue
		}
		lags, err := reconcile.Reached(ctx, b.sources, base, candidate)
		if err != nil || lags == nil {
			return err
		}
	}
}
