package compare

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// value is the canonical JSON text of a field; empty where the field is absent or null.
type value string

// text is what the value says: a string without its quotes and escapes, all else as it stands.
func (v value) text() string {
	if v == "" || v[0] != '"' {
		return string(v)
	}
	if strings.IndexByte(string(v), '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	text, err := jsontext.AppendUnquote(nil, []byte(v))
	if err != nil {
		return string(v)
	}
	return string(text)
}

// path is where a field is in the attributes: its names as JSON strings, quotes included. Canonical
// text spells a name in one way only, so names are compared without decoding them.
type path struct {
	// whole is a top-level field whose own name is the dotted path; empty where there is no dot.
	whole string
	steps []string
}

func compilePath(dotted string) (path, error) {
	var p path
	names := strings.Split(dotted, ".")
	for _, name := range names {
		quoted, err := jsontext.AppendQuote(nil, name)
		if err != nil {
			return p, err
		}
		p.steps = append(p.steps, string(quoted))
	}
	if len(names) > 1 {
		quoted, err := jsontext.AppendQuote(nil, dotted)
		if err != nil {
			return p, err
		}
		p.whole = string(quoted)
	}
	return p, nil
}

// fill finds the values of all paths in one pass over a canonical object. A top-level field whose
// own name holds the dots wins over the walk. Text that isn't canonical may hide fields.
func fill(values []value, paths []path, object string) {
	// Only a walk's value can be replaced by one that comes later.
	missing := len(paths)
	for at := 0; missing > 0; {
		name, found, end := nextField(object, at)
		if end < 0 {
			return
		}
		for i := range paths {
			p := &paths[i]
			switch {
			case name == p.whole:
				values[i] = found.orElse(values[i])
			case name != p.steps[0]:
			case p.whole == "":
				values[i] = found.orElse("")
				missing--
			case values[i] == "":
				values[i] = found.walk(p.steps[1:]).orElse("")
			}
		}
		at = end
	}
}

// orElse gives other where the value is absent or null.
func (v value) orElse(other value) value {
	if v == "" || v == "null" {
		return other
	}
	return v
}

// walk descends from a value by names; empty where the way ends.
func (v value) walk(steps []string) value {
	for _, step := range steps {
		v = v.field(step)
	}
	return v
}

func (v value) field(step string) value {
	for at := 0; ; {
		name, found, end := nextField(string(v), at)
		if end < 0 || name == step {
			return found
		}
		at = end
	}
}

// nextField gives the object's field that begins at the brace or comma at, and where it ends; end
// is negative after the last one, and where the text is no object.
func nextField(object string, at int) (name string, v value, end int) {
	if at >= len(object) || object[at] != '{' && (at == 0 || object[at] != ',') {
		return "", "", -1
	}
	colon := stringEnd(object, at+1)
	if colon < 0 || colon >= len(object) || object[colon] != ':' {
		return "", "", -1
	}
	if end = valueEnd(object, colon+1); end < 0 {
		return "", "", -1
	}
	return object[at+1 : colon], value(object[colon+1 : end]), end
}

// valueEnd gives the index past the value that begins at at, or -1 where it has no end.
func valueEnd(s string, at int) int {
	if at >= len(s) {
		return -1
	}
	switch s[at] {
	case '"':
		return stringEnd(s, at)
	case '{', '[':
		return compositeEnd(s, at)
	}
	for at < len(s) && s[at] != ',' && s[at] != '}' && s[at] != ']' {
		at++
	}
	return at
}

func compositeEnd(s string, at int) int {
	depth := 0
	for at < len(s) {
		switch s[at] {
		case '"':
			if at = stringEnd(s, at); at < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return at + 1
			}
		}
		at++
	}
	return -1
}

// stringEnd gives the index past the string that begins at at, or -1 where there is none.
func stringEnd(s string, at int) int {
	if at >= len(s) || s[at] != '"' {
		return -1
	}
	for from := at + 1; ; {
		i := strings.IndexByte(s[from:], '"')
		if i < 0 {
			return -1
		}
		quote := from + i
		backslashes := 0
		for s[quote-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return quote + 1
		}
		from = quote + 1
	}
}
