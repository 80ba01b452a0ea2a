package join_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
)

func TestRuleValidate(t *testing.T) {
	t.Parallel()
	sound := join.Rule{Version: "v1", Kind: join.Full, Provisional: join.Never}
	for _, c := range []struct {
		what   string
		change func(*join.Rule)
		// names is what the error must name; empty where the rule is sound.
		names string
	}{
		{"both bounds and the lateness zero", func(*join.Rule) {}, ""},
		{"everything set", func(r *join.Rule) {
			r.Before, r.After, r.Lateness = time.Hour, time.Microsecond, time.Second
			r.Kind, r.Provisional = join.LeftJoin, join.AtWindowClose
		}, ""},
		{"inner", func(r *join.Rule) { r.Kind = join.Inner }, ""},
		{"right, eager", func(r *join.Rule) { r.Kind, r.Provisional = join.RightJoin, join.Eager }, ""},
		{"no version", func(r *join.Rule) { r.Version = "" }, "rule.version"},
		{"no kind", func(r *join.Rule) { r.Kind = "" }, "rule.join"},
		{"unknown kind", func(r *join.Rule) { r.Kind = "outer" }, `"outer"`},
		{"no policy", func(r *join.Rule) { r.Provisional = "" }, "rule.provisional"},
		{"unknown policy", func(r *join.Rule) { r.Provisional = "lazy" }, `"lazy"`},
		{"before below zero", func(r *join.Rule) { r.Before = -1 }, "before"},
		{"after below zero", func(r *join.Rule) { r.After = -time.Second }, "after"},
		{"lateness below zero", func(r *join.Rule) { r.Lateness = -time.Hour }, "lateness"},
	} {
		rule := sound
		c.change(&rule)
		err := rule.Validate()
		switch {
		case c.names == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names)):
			t.Errorf("%s: error %v, want one that names %s", c.what, err, c.names)
		}
	}
}
