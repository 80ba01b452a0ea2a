// Package compare says whether the two events of a pair agree on the compared fields, and how
// they differ. Numbers are exact decimals; nothing here is ever a float.
package compare

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

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

// Comparer compares pairs by a list of fields. A nil Comparer gives no verdicts.
type Comparer struct {
	fields []field
	// left and right are the fields' paths.
	left, right []path
}

type field struct {
	Field
	absolute decimal.Decimal
	relative decimal.Decimal
	hasLimit bool
}

// New compiles the fields. An empty list gives nil: nothing is compared.
func New(fields []Field) (*Comparer, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	c := &Comparer{}
	for i, f := range fields {
		if err := c.add(f); err != nil {
			return nil, fmt.Errorf("compare field %d: %w", i+1, err)
		}
	}
	return c, nil
}

func (c *Comparer) add(f Field) error {
	if f.Left == "" || f.Right == "" {
		return errors.New("name the field on both sides: {left: amount, right: amount}")
	}
	left, err := compilePath(f.Left)
	if err != nil {
		return fmt.Errorf("left %q: not valid text: %w", f.Left, err)
	}
	right, err := compilePath(f.Right)
	if err != nil {
		return fmt.Errorf("right %q: not valid text: %w", f.Right, err)
	}
	compiled, err := compile(f)
	if err != nil {
		return err
	}
	c.fields = append(c.fields, compiled)
	c.left, c.right = append(c.left, left), append(c.right, right)
	return nil
}

func compile(f Field) (field, error) {
	compiled := field{Field: f}
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

// inlineFields is how many fields are compared without memory for their values.
const inlineFields = 8

// Compare gives the verdict on two events' attributes and the JSON array of the fields that are
// not equal, those within tolerance included; the array is empty text when all are equal. The
// attributes are canonical JSON objects as package record writes them.
func (c *Comparer) Compare(left, right string) (verdict, differences string) {
	if c == nil {
		return "", ""
	}
	var inline [2][inlineFields]value
	lefts, rights := inline[0][:], inline[1][:]
	if len(c.fields) > inlineFields {
		lefts, rights = make([]value, len(c.fields)), make([]value, len(c.fields))
	}
	fill(lefts, c.left, left)
	fill(rights, c.right, right)
	verdict = Agree
	var found []byte
	for i := range c.fields {
		if lefts[i] == rights[i] {
			continue
		}
		d, equal := c.fields[i].compare(lefts[i], rights[i])
		if equal {
			continue
		}
		if !d.within {
			verdict = Differ
		}
		found = d.appendTo(found)
	}
	if found == nil {
		return verdict, ""
	}
	return verdict, string(append(found, ']'))
}

// difference is one field that is not equal, as it is stored in the column differences. left and
// right are exact texts, nil when absent. apart is right minus left, nil unless both are numbers.
// within is true when the tolerance allows it.
type difference struct {
	field                         string
	left, right, apart, tolerance *string
	within                        bool
}

// compare looks closer at two values whose JSON is not the same.
func (f *field) compare(left, right value) (difference, bool) {
	d := difference{field: f.Left}
	if f.Tolerance != "" {
		d.tolerance = &f.Tolerance
	}
	leftText, rightText := left.text(), right.text()
	if left != "" {
		d.left = &leftText
	}
	if right != "" {
		d.right = &rightText
	}
	l, lok := left.number(leftText, f.hasLimit)
	r, rok := right.number(rightText, f.hasLimit)
	if !lok || !rok {
		// The same text as a string and as a number says the same thing.
		return d, left != "" && right != "" && leftText == rightText
	}
	apart := r.Sub(l)
	if apart.IsZero() {
		return d, true
	}
	text := apart.String()
	d.apart = &text
	limit := f.absolute
	if !f.relative.IsZero() {
		limit = l.Abs().Mul(f.relative)
	}
	d.within = f.hasLimit && apart.Abs().LessThanOrEqual(limit)
	return d, false
}

// appendTo appends the difference to the JSON array that found begins.
func (d *difference) appendTo(found []byte) []byte {
	open := byte(',')
	if found == nil {
		open = '['
	}
	found = appendText(append(append(found, open), `{"field":`...), &d.field)
	found = appendText(append(found, `,"left":`...), d.left)
	found = appendText(append(found, `,"right":`...), d.right)
	found = appendText(append(found, `,"difference":`...), d.apart)
	found = appendText(append(found, `,"tolerance":`...), d.tolerance)
	found = strconv.AppendBool(append(found, `,"within":`...), d.within)
	return append(found, '}')
}

func appendText(dst []byte, text *string) []byte {
	if text == nil {
		return append(dst, "null"...)
	}
	// The only error is of invalid UTF-8, for which U+FFFD stands then.
	dst, _ = jsontext.AppendQuote(dst, *text)
	return dst
}

// number reads the value as a decimal, text being what it says. Text counts as a number where a
// tolerance asks for one, and otherwise only when it is written as plainly as an amount: 10.00,
// but not 007 or 1e3.
func (v value) number(text string, lenient bool) (decimal.Decimal, bool) {
	switch {
	case v == "", v[0] != '"' && v[0] != '-' && (v[0] < '0' || v[0] > '9'):
		return decimal.Decimal{}, false
	case v[0] == '"' && !lenient && !plainAmount(text):
		return decimal.Decimal{}, false
	case len(text) > maxDigits:
		return decimal.Decimal{}, false
	}
	d, err := decimal.NewFromString(text)
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
