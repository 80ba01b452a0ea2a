package compare

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestFill(t *testing.T) {
	t.Parallel()
	const object = `{"":0,"a":null,"amount":1.50,"amounts":2,"b":{"c":{"d":"deep","d\"":"quoted"},"e":[{` +
		`"c":3}]},"b.c.d":null,"f":{"g":1},"f.g":2,"n\\":"back\\","q\"q":"\"}{","t":"x,\"a\":1","z":{}}`
	for dotted, want := range map[string]string{
		"a": "", "am": "", "amount": `1.50`, "amounts": `2`, "absent": "",
		"b.c.d": `"deep"`, `b.c.d"`: `"quoted"`, "b.e": `[{"c":3}]`, "b.e.c": "", "b.c.d.x": "",
		"f.g": `2`, `n\`: `"back\\"`, `q"q`: `"\"}{"`, "t": `"x,\"a\":1"`, "z": `{}`, "z.z": "",
	} {
		p, err := compilePath(dotted)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]value, 1)
		if fill(values, []path{p}, object); string(values[0]) != want {
			t.Errorf("%s: got %s, want %s", dotted, values[0], want)
		}
	}
}

// FuzzFill holds that the scan finds in canonical text what a JSON decoder finds, for several paths
// at once, and that on any other text it ends.
func FuzzFill(f *testing.F) {
	f.Add(`{"amount":1.50,"paid":{"amount":"2"},"paid.amount":null}`, "amount paid.amount paid a.b.c")
	f.Add(`{"a":{"b":{"c":"\u001f\\\""}},"a.b":{"c":1},"a.b.c":2,"\"":[{"a":1}]}`, `a.b.c a.b a "`)
	f.Add(`{"a\\":"\\\\","é":"\n","a":[[],{},"]"],"b":{"a":{}}}`, `a\ é b.a a b.`)
	f.Add(`{"a":"unended\"`, "a . .a")
	f.Fuzz(func(t *testing.T, text, dotted string) {
		var paths []path
		var names []string
		for name := range strings.FieldsSeq(dotted) {
			if p, err := compilePath(name); err == nil {
				paths, names = append(paths, p), append(names, name)
			}
		}
		values := make([]value, len(paths))
		fill(values, paths, text)
		for _, v := range values {
			v.text()
		}
		canonical := jsontext.Value(text)
		if canonical.Canonicalize(
			jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false),
		) != nil {
			return
		}
		clear(values)
		fill(values, paths, string(canonical))
		for i, name := range names {
			raw, decoded := decode(string(canonical), name)
			if got := values[i]; string(got) != raw || got.text() != decoded {
				t.Errorf("%s in %s: got %s, want %s", name, canonical, got, raw)
			}
		}
	})
}

// FuzzCompare holds that text of any kind gives a verdict and valid JSON.
func FuzzCompare(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":2}`, "a", "5%")
	f.Add("{\"a\":\"\xff\"}", `{"b":{"a":"\ud800"}}`, "b.a", "0.01")
	f.Add(`{"a":}`, `{"a":-}`, "a", "")
	f.Fuzz(func(t *testing.T, left, right, name, tolerance string) {
		c, err := New([]Field{{Left: "a", Right: name, Tolerance: tolerance}})
		if err != nil {
			return
		}
		verdict, differences := c.Compare(left, right)
		if verdict != Agree && verdict != Differ || verdict == Differ && differences == "" {
			t.Errorf("verdict %q with differences %q", verdict, differences)
		}
		if differences != "" && !jsontext.Value(differences).IsValid() {
			t.Errorf("not JSON: %s", differences)
		}
	})
}

// decode finds a path by a general decoder, which takes nothing for granted.
func decode(object, dotted string) (raw, text string) {
	if raw, text = decodeSteps(object, []string{dotted}); raw != "" {
		return raw, text
	}
	return decodeSteps(object, strings.Split(dotted, "."))
}

func decodeSteps(object string, steps []string) (raw, text string) {
	d := jsontext.NewDecoder(strings.NewReader(object))
	for _, step := range steps {
		if !enter(d, step) {
			return "", ""
		}
	}
	v, err := d.ReadValue()
	if err != nil || v.Kind() == 'n' {
		return "", ""
	}
	raw, text = string(v), string(v)
	if v.Kind() == '"' {
		unquoted, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return "", ""
		}
		text = string(unquoted)
	}
	return raw, text
}

// enter moves the decoder to the value of the field name of the object that is next.
func enter(d *jsontext.Decoder, name string) bool {
	if d.PeekKind() != '{' {
		return false
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		field, err := d.ReadToken()
		if err != nil {
			return false
		}
		if field.String() == name {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}
