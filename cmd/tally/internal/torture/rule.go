package torture

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Rule is the join rule that is tortured.
type Rule struct {
	Version, Join, Provisional string
	Before, After, Lateness    time.Duration
	Compare                    []Compare
}

// Compare is one compared field of a pair, by its dotted paths.
type Compare struct{ Left, Right, Tolerance string }

// setup is what besides the faults differs from seed to seed.
type setup struct {
	rule           Rule
	outOfOrderness time.Duration
	maxEvents      int
	cacheRows      int
}

// The field names of the generated records, which no rule compares.
const (
	fieldID       = "tally_id"
	fieldRevision = "tally_revision"
	fieldKey      = "tally_key"
	fieldTime     = "tally_time"
	fieldDeleted  = "tally_deleted"
	fieldNote     = "tally_note"
)

// setupOf draws the setup of a seed; the rule too where none is given.
func setupOf(seed uint64, rule *Rule) setup {
	rng := rand.New(rand.NewPCG(seed, streamSetup))
	s := setup{
		outOfOrderness: pick(rng, 0, 5*time.Second, time.Minute),
		maxEvents:      pick(rng, 8, 12, 20),
		cacheRows:      pick(rng, 2_000_000, 2_000_000, 40),
	}
	if rule != nil {
		s.rule = *rule
		return s
	}
	lengths := []time.Duration{0, time.Second, time.Minute, 10 * time.Minute}
	s.rule = Rule{
		Version:     "v1",
		Join:        pick(rng, "inner", "left", "right", "full", "full"),
		Provisional: pick(rng, "eager", "at-window-close", "never"),
		Before:      pick(rng, lengths...),
		After:       pick(rng, lengths...),
		Lateness:    pick(rng, 0, time.Minute, 5*time.Minute),
		Compare:     []Compare{{Left: "amount", Right: "data.amount", Tolerance: "0.01"}},
	}
	return s
}

// configuration gives the file that the workers of a seed run with.
func (s *setup) configuration(schema string) string {
	var b strings.Builder
	r := &s.rule
	fmt.Fprintf(&b, "name: torture\nschema: %s\n", quoted(schema))
	fmt.Fprintf(&b, "rule:\n  version: %s\n  join: %s\n  provisional: %s\n", quoted(r.Version), r.Join,
		r.Provisional)
	fmt.Fprintf(&b, "  before: %s\n  after: %s\n  lateness: %s\n", r.Before, r.After, r.Lateness)
	if len(r.Compare) > 0 {
		b.WriteString("  compare:\n")
	}
	for _, c := range r.Compare {
		fmt.Fprintf(&b, "    - {left: %s, right: %s", quoted(c.Left), quoted(c.Right))
		if c.Tolerance != "" {
			fmt.Fprintf(&b, ", tolerance: %s", quoted(c.Tolerance))
		}
		b.WriteString("}\n")
	}
	for _, side := range []string{"left", "right"} {
		fmt.Fprintf(&b, "%s:\n  source: {type: file, path: %s.ndjson}\n  id: %s\n  revision: %s\n"+
			"  key: %s\n  time: %s\n  deleted: %s\n  out_of_orderness: %s\n", side, side, fieldID,
			fieldRevision, fieldKey, fieldTime, fieldDeleted, s.outOfOrderness)
	}
	fmt.Fprintf(&b, "epoch: {max_events: %d}\nstate: {cache_rows: %d}\nretain: {epochs: %d}\n",
		s.maxEvents, s.cacheRows, retainEpochs)
	return b.String()
}

// quoted gives text as YAML takes it.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprintf("torture: quote %q: %v", text, err))
	}
	return string(out)
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }
