package record

import (
	"strings"
	"testing"
	"unicode/utf8"
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
