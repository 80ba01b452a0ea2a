// Package compare says whether the two events of a pair agree on the compared fields, and how
// they differ. Numbers are exact decimals; nothing here is ever a float.
package compare

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// Verdicts on a pair.
const (
	Agree  = "agree"
	Differ = "differ"
)

// Field is one compared field: where it is on each side, and how far apart it may be.
type Field struct {
	// Left and Right are dotted paths into the attributes.
	Left, Right string
	// Tolerance is empty (exact), an amount ("0.01") or a share of the left value ("5%").
	Tolerance string
}

// Difference is one field that is not equal, as it is stored in the column differences. Left and
// Right are exact texts, nil when absent. Difference is right minus left, nil unless both are
// numbers. Within is true when the tolerance allows it.
type Difference struct {
	Field      string  `json:"field"`
	Left       *string `json:"left"`
	Right      *string `json:"right"`
	Difference *string `json:"difference"`
	Tolerance  *string `json:"tolerance"`
	Within     bool    `json:"within"`
}

// Comparer compares pairs by a list of fields. A nil Comparer gives no verdicts.
type Comparer struct {
	fields []field
}

type field struct {
	Field
	left, right []string
	absolute    decimal.Decimal
	relative    decimal.Decimal
	hasLimit    bool
}

// New compiles the fields. An empty list gives nil: nothing is compared.
func New(fields []Field) (*Comparer, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	c := &Comparer{}
	for i, f := range fields {
		compiled, err := compile(f)
		if err != nil {
			return nil, fmt.Errorf("compare field %d: %w", i+1, err)
		}
		c.fields = append(c.fields, compiled)
	}
	return c, nil
}

func compile(f Field) (field, error) {
	compiled := field{Field: f, left: strings.Split(f.Left, "."), right: strings.Split(f.Right, ".")}
	if f.Left == "" || f.Right == "" {
		return compiled, errors.New("name the field on both sides: {left: amount, right: amount}")
	}
	if f.Tolerance == "" {
		return compiled, nil
	}
	text, percent := strings.CutSuffix(f.Tolerance, "%")
	limit, err := decimal.NewFromString(text)
	if err != nil || limit.IsNegative() {
		return compiled, fmt.Errorf(`tolerance %q: want an amount like "0.01" or a share like "5%%"`,
			f.Tolerance)
	}
	compiled.hasLimit = true
	if percent {
		compiled.relative = limit.Shift(-2)
	} else {
		compiled.absolute = limit
	}
	return compiled, nil
}

// Compare gives the verdict on two events' attributes and the JSON array of the fields that are
// not equal, those within tolerance included; the array is empty text when all are equal.
func (c *Comparer) Compare(left, right string) (verdict, differences string) {
	if c == nil {
		return "", ""
	}
	verdict = Agree
	var found []Difference
	for i := range c.fields {
		f := &c.fields[i]
		d, equal := f.compare(lookup(left, f.left), lookup(right, f.right))
		if equal {
			continue
		}
		if !d.Within {
			verdict = Differ
		}
		found = append(found, d)
	}
	if len(found) == 0 {
		return verdict, ""
	}
	text, err := json.Marshal(found)
	if err != nil {
		panic(fmt.Sprintf("compare: differences of valid attributes: %v", err))
	}
	return verdict, string(text)
}

func (f *field) compare(left, right value) (Difference, bool) {
	d := Difference{Field: f.Left, Left: left.pointer(), Right: right.pointer()}
	if f.Tolerance != "" {
		d.Tolerance = &f.Tolerance
	}
	if left == right {
		return d, true
	}
	l, lok := left.number(f.hasLimit)
	r, rok := right.number(f.hasLimit)
	if !lok || !rok {
		// The same text as a string and as a number says the same thing.
		return d, left.present && right.present && left.text == right.text
	}
	apart := r.Sub(l)
	if apart.IsZero() {
		return d, true
	}
	text := apart.String()
	d.Difference = &text
	limit := f.absolute
	if !f.relative.IsZero() {
		limit = l.Abs().Mul(f.relative)
	}
	d.Within = f.hasLimit && apart.Abs().LessThanOrEqual(limit)
	return d, false
}

// value is a JSON value by its text; null counts as absent.
type value struct {
	text    string
	kind    jsontext.Kind
	present bool
}

func (v value) pointer() *string {
	if !v.present {
		return nil
	}
	return &v.text
}

// number reads the value as a decimal. Text counts as a number where a tolerance asks for one, and
// otherwise only when it is written as plainly as an amount: 10.00, but not 007 or 1e3.
func (v value) number(lenient bool) (decimal.Decimal, bool) {
	switch {
	case !v.present, v.kind != '0' && v.kind != '"':
		return decimal.Decimal{}, false
	case v.kind == '"' && !lenient && !plainAmount(v.text):
		return decimal.Decimal{}, false
	case len(v.text) > maxDigits:
		return decimal.Decimal{}, false
	}
	d, err := decimal.NewFromString(v.text)
	if err != nil || d.Exponent() > maxDigits || d.Exponent() < -maxDigits {
		return decimal.Decimal{}, false
	}
	return d, true
}

// maxDigits keeps hostile numbers like 1e999999999 from growing without bound.
const maxDigits = 1000

func plainAmount(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	whole, fraction, dotted := strings.Cut(digits, ".")
	if !allDigits(whole) || (len(whole) > 1 && whole[0] == '0') {
		return false
	}
	return !dotted || allDigits(fraction)
}

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// lookup finds a path in a JSON object. A field whose own name holds the dots wins over the walk.
func lookup(object string, path []string) value {
	if len(path) > 1 {
		if v := walk(object, []string{strings.Join(path, ".")}); v.present {
			return v
		}
	}
	return walk(object, path)
}

func walk(object string, path []string) value {
	d := jsontext.NewDecoder(bytes.NewReader([]byte(object)))
	for _, name := range path {
		if !enter(d, name) {
			return value{}
		}
	}
	raw, err := d.ReadValue()
	if err != nil || raw.Kind() == 'n' {
		return value{}
	}
	v := value{text: string(raw), kind: raw.Kind(), present: true}
	if v.kind == '"' {
		unquoted, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return value{}
		}
		v.text = string(unquoted)
	}
	return v
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
