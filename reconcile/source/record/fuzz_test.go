package record

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// FuzzJSON holds that no input panics, that what comes out as an event is fit to be stored, and
// that canonical attributes are their own canonical form.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(typical))
	f.Add([]byte(`{"id":"\ud83d\ude00","k":{"b":[{"\u00e9":1,"a":{}}],"a":1e-5},` +
		`"t":"1970-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"id":1,"k":{"z":"\\u0000"},"t":"1970-01-01T00:00:00Z","x":[[],{}]}`))
	f.Add([]byte(`{"id":1,"k":{"z":2},"g":true,"t":null,"k.z":3} `))
	mapping := Mapping{
		ID: "id", Key: []string{"k.z"}, Time: "t", Deleted: "g", Numeric: []string{"k.a"},
		Keep: []string{"id", "k.z", "t", "g"}, MaxEventBytes: 1 << 12,
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := mapper(t, mapping)
		first := m.JSON(raw)
		if first.Reason != "" {
			return
		}
		e := first.Event
		for _, text := range []string{e.ID, e.Key, e.Attributes} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Fatalf("not fit to be stored: %q", text)
			}
		}
		if e.ID == "" || e.Key == "" && !e.Deleted || escapesNul([]byte(e.Attributes)) {
			t.Fatalf("not an event: %+v", e)
		}
		if len(e.Attributes) > mapping.MaxEventBytes {
			return // control characters may grow when they are escaped anew
		}
		again := m.JSON([]byte(e.Attributes))
		if again.Reason != "" || again.Event != e {
			t.Fatalf("not canonical:\n%q\n%q %q", e.Attributes, again.Reason, again.Event.Attributes)
		}
	})
}

// FuzzPlain holds that the plain path gives the record that the general one gives, whatever the
// input, and that it takes an event's attributes again when they need no escapes or exponents.
func FuzzPlain(f *testing.F) {
	f.Add([]byte(typical))
	f.Add([]byte(` { "id" : "\u00e9é" , "k":{"b":[1,-0.10,{"a":{},"b":[]}],"z":null},` +
		`"t":"1970-01-01T00:00:00Z","a":true,"c":false,"":"\x7f"} `))
	for _, x := range []string{
		`01`, `-`, `-0.0`, `1.`, `1e5`, `.5`, `tru`, `truee`, `nul`, `}`, `1,"id":1`, `1,`, `1}`,
		`[`, `[1,]`, `[,]`, `[1 ]`, `{`, `{"a"}`, `{"a":1,}`, `{"a" :1}`, `{"a":1,"a":1}`,
		`{"b":1,"a":1}`, `{"a":{"":1,"b":[{}]}}`, `"`, ``, `"\u0000"`, `"\ud800"`, `"\\"`,
		"\"\n\"", "\"\x00\"", "\"\x1f\"", "\n1", "1\t",
	} {
		f.Add([]byte(`{"id":1,"k.z":1,"t":"1970-01-01T00:00:00Z","x":` + x + `}`))
	}
	f.Add([]byte("{\"id\":\"a\tb\",\"k.z\":\"\xff\",\"x\":[1,2"))
	f.Add([]byte("{}"))
	f.Add([]byte(`{"id":1,"t":"0001-01-01T00:00:00Z","k":{"z":` + strings.Repeat("[", 99) +
		strings.Repeat("]", 99) + `}}`))
	mapping := Mapping{
		ID: "id", Key: []string{"k.z"}, Time: "t", Deleted: "g", Numeric: []string{"k.a"},
		Keep: []string{"id", "t"}, MaxEventBytes: 1 << 12,
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, want := mapper(t, mapping).JSON(raw), general(mapper(t, mapping), raw)
		if got.Reason != want.Reason || got.Event != want.Event || !bytes.Equal(got.Raw, want.Raw) {
			t.Fatalf("%q:\ngot  %q %+v\nwant %q %+v", raw, got.Reason, got.Event, want.Reason, want.Event)
		}
		attributes := got.Event.Attributes
		for _, name := range []string{"id", "k", "t", "x", "", "é"} {
			m, object := mapper(t, mapping), []byte(attributes)
			if got.Reason == "" && !bytes.Equal(m.lookUp(object, name), m.decodeField(object, name)) {
				t.Fatalf("%s in %s: %s", name, object, m.lookUp(object, name))
			}
		}
		if got.Reason != "" || attributes == "{}" || strings.ContainsAny(attributes, `\eE`) ||
			strings.Count(attributes, ",") >= plainMembersMax {
			return
		}
		if !mapper(t, mapping).readPlain([]byte(attributes)) {
			t.Fatalf("not plain: %s", attributes)
		}
	})
}

// general reads a record without the plain path.
func general(m *Mapper, raw []byte) stream.Record {
	if len(raw) > m.MaxEventBytes() {
		return m.TooLarge(raw)
	}
	if reason := m.read(raw); reason != "" {
		return stream.Record{Reason: reason, Raw: raw}
	}
	m.fillSlots()
	m.writeAttributes()
	return m.finish(raw)
}

// FuzzTime holds that RFC 3339 text has the time that package time gives it, where that isn't
// more forgiving.
func FuzzTime(f *testing.F) {
	for _, text := range []string{
		"2024-02-29T12:34:56.123456789+01:30", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
		"2000-02-29T23:59:59-23:59", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z",
		"2024-04-31T00:00:00Z", "2024-13-01T00:00:00Z", "2024-01-01T24:00:00Z",
		"2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z", "2024-01-00T00:00:00.Z", "0001-01-01T00:00:00+",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := rfc3339(&value{kind: text, text: []byte(s)})
		at, err := time.Parse(time.RFC3339, s)
		want := stream.MicrosOf(at)
		_, inRange := inRange(want)
		forgiven := len(s) < 20 || !strings.ContainsAny(s[19:20], ".Z+-")
		if !forgiven && s[len(s)-1] != 'Z' {
			zone := s[len(s)-6:]
			forgiven = zone[1:3] > "23" || zone[4:] > "59"
		}
		switch valid := err == nil && inRange && !forgiven; {
		case ok != valid:
			t.Errorf("%q: %v, want %v (%v)", s, ok, valid, err)
		case ok && got != want:
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	})
}

// FuzzCSV holds the same of rows.
func FuzzCSV(f *testing.F) {
	f.Add("a", "k", "1970-01-01T00:00:00Z", "x")
	f.Fuzz(func(t *testing.T, id, key, at, note string) {
		m := mapper(t, Mapping{ID: "id", Key: []string{"k"}, Time: "t"})
		header, err := m.Header([]string{"id", "k", "t", "note"})
		if err != nil {
			t.Fatal(err)
		}
		cells := [][]byte{[]byte(id), []byte(key), []byte(at), []byte(note)}
		r := m.CSV(header, cells, []byte(id+","+key+","+at+","+note))
		if r.Reason != "" {
			return
		}
		for _, text := range []string{r.Event.ID, r.Event.Key, r.Event.Attributes} {
			if text == "" || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Fatalf("not fit to be stored: %+v", r.Event)
			}
		}
	})
}
