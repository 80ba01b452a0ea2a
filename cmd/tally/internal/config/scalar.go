package config

import (
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Secret is text that never shows: not when formatted, logged or marshalled.
type Secret string

const hidden = "[hidden]"

// Reveal gives the text itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// LogValue hides the text from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Duration is a time.Duration that may be written in days: 10d, 1d12h. It is never negative and
// has no fraction of a microsecond, since that is what event times are measured in.
type Duration time.Duration

// UnmarshalYAML reads 90s, 1d12h or a bare 0.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	text, ok := scalarText(node)
	if !ok {
		return errorAt(node, "want a duration such as 90s, 10m or 1d12h")
	}
	parsed, err := parseDuration(text)
	if err != nil {
		return errorAt(node, err.Error())
	}
	*d = Duration(parsed)
	return nil
}

// Std gives the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes the duration as Go does.
func (d Duration) String() string { return time.Duration(d).String() }

var daysFirst = regexp.MustCompile(`^([0-9]+)d(.*)$`)

func parseDuration(text string) (time.Duration, error) {
	rest, days := text, time.Duration(0)
	if strings.HasPrefix(rest, "-") {
		return 0, fmt.Errorf("%s is negative", text)
	}
	if m := daysFirst.FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > math.MaxInt64/int64(24*time.Hour) {
			return 0, fmt.Errorf("%s is longer than 292 years", text)
		}
		days, rest = time.Duration(n)*24*time.Hour, m[2]
		if rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	switch {
	case err != nil || strings.ContainsAny(rest, "+-"):
		return 0, fmt.Errorf("%q is no duration: want 90s, 10m or 1d12h", text)
	case d > math.MaxInt64-days:
		return 0, fmt.Errorf("%s is longer than 292 years", text)
	case d%time.Microsecond != 0:
		return 0, fmt.Errorf("%s is not a whole number of microseconds", text)
	}
	return days + d, nil
}

// Size is a number of bytes that may be written as 64KB or 1MiB.
type Size int64

// UnmarshalYAML reads 1048576, 64KB or 1MiB.
func (s *Size) UnmarshalYAML(node ast.Node) error {
	text, ok := scalarText(node)
	if !ok {
		return errorAt(node, "want a size such as 64KB or 1MiB")
	}
	parsed, err := parseSize(text)
	if err != nil {
		return errorAt(node, err.Error())
	}
	*s = Size(parsed)
	return nil
}

var (
	sizeText  = regexp.MustCompile(`^([0-9]+) ?([A-Za-z]*)$`)
	sizeUnits = map[string]int64{
		"": 1, "B": 1,
		"KB": 1e3, "MB": 1e6, "GB": 1e9,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30,
	}
)

func parseSize(text string) (int64, error) {
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is no size: want 64KB or 1MiB", text)
	}
	unit, known := sizeUnits[strings.ToUpper(m[2])]
	n, err := strconv.ParseInt(m[1], 10, 64)
	if !known || err != nil || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size: want 64KB or 1MiB", text)
	}
	return n * unit, nil
}

// Text is text that may be written as a bare number, of which every digit counts: 1.10 is not 1.1.
type Text string

// UnmarshalYAML reads a string, or a number by its exact text.
func (t *Text) UnmarshalYAML(node ast.Node) error {
	text, ok := scalarText(node)
	if !ok {
		return errorAt(node, "want text")
	}
	*t = Text(text)
	return nil
}

// Fields is one field name or a list of them.
type Fields []string

// UnmarshalYAML reads a name or a list of names.
func (f *Fields) UnmarshalYAML(node ast.Node) error {
	if _, isList := node.(*ast.SequenceNode); isList {
		return yaml.NodeToValue(node, (*[]string)(f), yaml.Strict())
	}
	text, ok := node.(*ast.StringNode)
	if !ok {
		return errorAt(node, "want a field name or a list of field names")
	}
	*f = Fields{text.Value}
	return nil
}

// Sources is one source or a list of them.
type Sources []Source

// UnmarshalYAML reads a map or a list of maps.
func (s *Sources) UnmarshalYAML(node ast.Node) error {
	if _, isList := node.(*ast.SequenceNode); isList {
		return yaml.NodeToValue(node, (*[]Source)(s), yaml.Strict())
	}
	var one Source
	if err := yaml.NodeToValue(node, &one, yaml.Strict()); err != nil {
		return err
	}
	*s = Sources{one}
	return nil
}

// scalarText gives the text of a string or number as it was written, or as ${…} made it.
func scalarText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	}
	return "", false
}
