package compare_test

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/reconcile/compare"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	amount := compare.Field{Left: "amount", Right: "paid.amount"}
	cent := compare.Field{Left: "amount", Right: "paid.amount", Tolerance: "0.01"}
	share := compare.Field{Left: "amount", Right: "paid.amount", Tolerance: "5%"}
	for _, c := range []struct {
		name        string
		field       compare.Field
		left, right string
		verdict     string
		differences string
	}{
		{"equal", amount, `{"amount":"1.50"}`, `{"paid":{"amount":"1.50"}}`, "agree", ""},
		{"equal by value", amount, `{"amount":"1.5"}`, `{"paid":{"amount":1.50}}`, "agree", ""},
		{
			"codes are text", amount, `{"amount":"007"}`, `{"paid":{"amount":"7"}}`, "differ",
			`[{"field":"amount","left":"007","right":"7","difference":null,"tolerance":null,"within":false}]`,
		},
		{
			"exact beyond floats", amount, `{"amount":9007199254740993}`,
			`{"paid":{"amount":9007199254740992}}`, "differ",
			`[{"field":"amount","left":"9007199254740993","right":"9007199254740992",` +
				`"difference":"-1","tolerance":null,"within":false}]`,
		},
		{
			"on the tolerance", cent, `{"amount":"324.71"}`, `{"paid":{"amount":"324.72"}}`, "agree",
			`[{"field":"amount","left":"324.71","right":"324.72","difference":"0.01",` +
				`"tolerance":"0.01","within":true}]`,
		},
		{
			"just past it", cent, `{"amount":"324.71"}`, `{"paid":{"amount":"324.7201"}}`, "differ",
			`[{"field":"amount","left":"324.71","right":"324.7201","difference":"0.0101",` +
				`"tolerance":"0.01","within":false}]`,
		},
		{
			"share of a negative", share, `{"amount":-100}`, `{"paid":{"amount":-105}}`, "agree",
			`[{"field":"amount","left":"-100","right":"-105","difference":"-5",` +
				`"tolerance":"5%","within":true}]`,
		},
		{
			"share past it", share, `{"amount":100}`, `{"paid":{"amount":105.01}}`, "differ",
			`[{"field":"amount","left":"100","right":"105.01","difference":"5.01",` +
				`"tolerance":"5%","within":false}]`,
		},
		{
			"absent on one side", cent, `{"amount":1}`, `{"paid":{}}`, "differ",
			`[{"field":"amount","left":"1","right":null,"difference":null,` +
				`"tolerance":"0.01","within":false}]`,
		},
		{"absent on both", cent, `{}`, `{"paid":{"amount":null}}`, "agree", ""},
		{
			"not a number", cent, `{"amount":"n/a"}`, `{"paid":{"amount":1}}`, "differ",
			`[{"field":"amount","left":"n/a","right":"1","difference":null,` +
				`"tolerance":"0.01","within":false}]`,
		},
		{
			"a name with a dot", amount, `{"amount":1}`, `{"paid":{"amount":2},"paid.amount":1}`,
			"agree", "",
		},
		{
			"hostile exponent", cent, `{"amount":1e999999999}`, `{"paid":{"amount":1}}`, "differ",
			`[{"field":"amount","left":"1e999999999","right":"1","difference":null,` +
				`"tolerance":"0.01","within":false}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			comparer, err := compare.New([]compare.Field{c.field})
			if err != nil {
				t.Fatal(err)
			}
			verdict, differences := comparer.Compare(c.left, c.right)
			if verdict != c.verdict || differences != c.differences {
				t.Errorf("got %s %s\nwant %s %s", verdict, differences, c.verdict, c.differences)
			}
		})
	}
}

// TestCompareManyFields has more fields than fit the stack, and differences that need escapes.
func TestCompareManyFields(t *testing.T) {
	t.Parallel()
	var fields []compare.Field
	for name := range strings.SplitSeq("a b c d e f g h i", " ") {
		fields = append(fields, compare.Field{Left: name, Right: name})
	}
	comparer, err := compare.New(fields)
	if err != nil {
		t.Fatal(err)
	}
	const left = `{"a":1,"b":"\"x\"","c":true,"d":[1],"e":{},"f":"1","g":"\\","h":null,"i":"2"}`
	const right = `{"a":1.0,"b":"\n","c":true,"d":[1],"e":{},"f":1,"g":"\\","i":"2.5"}`
	verdict, differences := comparer.Compare(left, right)
	const want = `[{"field":"b","left":"\"x\"","right":"\n","difference":null,"tolerance":null,` +
		`"within":false},{"field":"i","left":"2","right":"2.5","difference":"0.5",` +
		`"tolerance":null,"within":false}]`
	if verdict != compare.Differ || differences != want {
		t.Errorf("got %s %s\nwant %s", verdict, differences, want)
	}
}

func TestNewRefusesBadFields(t *testing.T) {
	t.Parallel()
	for _, tolerance := range []string{"-1", "five", "5%%", "%", "NaN"} {
		if _, err := compare.New([]compare.Field{{Left: "a", Right: "a", Tolerance: tolerance}}); err == nil {
			t.Errorf("tolerance %q was accepted", tolerance)
		}
	}
	for _, f := range []compare.Field{{Left: "a"}, {Right: "a"}, {Left: "\xff", Right: "a"}} {
		if _, err := compare.New([]compare.Field{f}); err == nil {
			t.Errorf("field %+v was accepted", f)
		}
	}
	if c, err := compare.New(nil); c != nil || err != nil {
		t.Errorf("no fields: got %v, %v; want nil, nil", c, err)
	}
}
