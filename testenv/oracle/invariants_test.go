package oracle

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestInvariants holds every epoch of adversarial histories to what must be true whatever comes.
func TestInvariants(t *testing.T) {
	t.Parallel()
	for seed := range Seeds(t, 500, 1) {
		h := Generate(seed, Adversarial)
		epochs := h.Split(seed)
		w := &watcher{watermark: stream.NegInfinity, statuses: map[string]stream.Status{}}
		run(h, epochs, func(m *Model, rep Report) {
			if broken := w.broken(m, rep); broken != "" {
				t.Fatalf("seed %d epoch %d: %s\n%s", seed, w.epoch, broken, h.Describe(epochs))
			}
		})
	}
}

// watcher remembers what the epoch before left.
type watcher struct {
	epoch     int
	watermark stream.Micros
	buffered  int64
	statuses  map[string]stream.Status
}

// broken names the first invariant that does not hold after an epoch.
func (w *watcher) broken(m *Model, rep Report) string {
	w.epoch++
	now := m.Statuses()
	defer func() {
		w.watermark, w.buffered, w.statuses = rep.WatermarkAfter, rep.Counts.Buffered, now
	}()
	n := rep.Counts
	switch {
	case !n.Balanced():
		return "the counts do not balance"
	case n.Late != int64(len(rep.Corrections)) || n.Quarantined != int64(len(rep.Quarantined)):
		return "what was set aside is not what was counted"
	case rep.WatermarkBefore != w.watermark || rep.WatermarkAfter < w.watermark:
		return "the watermark went back or jumped between epochs"
	case n.Buffered > w.buffered+n.Accepted-n.Expired || n.Buffered < 0:
		return "the buffer holds more than went in"
	case int64(len(rep.Transitions)) !=
		n.Paired+n.ProvisionalOpened+n.Retracted+n.Superseded+n.Final:
		return "a transition is not counted"
	}
	for result, status := range w.statuses {
		if status == stream.Final && now[result] != stream.Final {
			return "the final row " + result + " changed"
		}
	}
	for _, tr := range rep.Transitions {
		if w.statuses[tr.Result] != tr.From || now[tr.Result] != tr.To || tr.From == "" &&
			!tr.To.Active() {
			return "not a net transition: " + tr.String()
		}
	}
	return beside(now)
}

// beside names an event revision that is both matched and reported unmatched, or an id that is
// active under two revisions.
func beside(statuses map[string]stream.Status) string {
	matched, unmatched, revision := map[string]bool{}, map[string]bool{}, map[string]string{}
	for result, status := range statuses {
		if !status.Active() {
			continue
		}
		members := strings.Fields(result)
		for s, m := range members {
			if m == "-" {
				continue
			}
			m = stream.Side(s).String() + " " + m
			matched[m] = matched[m] || status == stream.Matched
			unmatched[m] = unmatched[m] || status != stream.Matched
			if matched[m] && unmatched[m] {
				return m + " is matched and unmatched"
			}
			id := m[:strings.LastIndex(m, "/")]
			if other := revision[id]; other != "" && other != m {
				return m + " and " + other + " are both active"
			}
			revision[id] = m
		}
	}
	return ""
}
