package record

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

var payments = Mapping{
	ID: "id", Revision: "rev", Key: []string{"key"}, Time: "at", Deleted: "gone",
	Numeric: []string{"amount"}, MaxEventBytes: 600,
}

func mapper(t testing.TB, mapping Mapping) *Mapper {
	t.Helper()
	m, err := New(mapping)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func micros(t *testing.T, text string) stream.Micros {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return stream.MicrosOf(at)
}

func TestJSONGivesEveryPartOfAnEvent(t *testing.T) {
	t.Parallel()
	m := mapper(t, payments)
	raw := ` {"z":1.10, "id":"p\u00e9","rev":7,"key":"k","at":"2024-03-01T12:00:00.1234569+01:00",` +
		`"gone":false,"amount":9007199254740993,"b":{"y":[1, {"d":1,"c":"\/"}],"x":null}} `
	got := m.JSON([]byte(raw))
	want := stream.Event{
		ID: "pé", Revision: 7, Key: "k", HasTime: true,
		Time:       micros(t, "2024-03-01T11:00:00.123456Z"),
		Attributes: `{"amount":9007199254740993,"b":{"x":null,"y":[1,{"c":"/","d":1}]},"z":1.10}`,
	}
	if got.Reason != "" || got.Event != want {
		t.Errorf("got %q %+v\nwant %+v", got.Reason, got.Event, want)
	}
	if string(got.Raw) != raw {
		t.Errorf("raw changed: %q", got.Raw)
	}
}

// TestBadInput has one row for each way a record can be bad, and checks that the next record is
// read as if nothing had happened.
func TestBadInput(t *testing.T) {
	t.Parallel()
	event := func(fields string) string {
		return `{"rev":1,"key":"k","at":"2024-03-01T12:00:00Z",` + fields + `}`
	}
	const at = `"at":"2024-03-01T12:00:00Z"`
	nested := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for name, test := range map[string]struct {
		raw  string
		want stream.Reason
	}{
		"not JSON":              {`{"id":`, stream.NotJSON},
		"empty":                 {``, stream.NotJSON},
		"trailing garbage":      {event(`"id":"a"`) + `x`, stream.NotJSON},
		"two objects":           {event(`"id":"a"`) + event(`"id":"b"`), stream.NotJSON},
		"bare NaN":              {event(`"id":"a","amount":NaN`), stream.NotJSON},
		"missing comma":         {`{"id":"a" "key":"k"}`, stream.NotJSON},
		"number as a name":      {`{1:2}`, stream.NotJSON},
		"101 deep":              {event(`"id":"a","x":` + nested), stream.NotJSON},
		"an array":              {`[1]`, stream.NotObject},
		"null":                  {`null`, stream.NotObject},
		"a string":              {`"a"`, stream.NotObject},
		"an array and more":     {`[1] 2`, stream.NotJSON},
		"id twice":              {event(`"id":"a","id":"a"`), stream.DuplicateField},
		"twice by escape":       {event(`"id":"a","x":{"k":1,"\u006b":2}`), stream.DuplicateField},
		"invalid UTF-8":         {event("\"id\":\"a\xff\""), stream.BadUTF8},
		"overlong UTF-8":        {event("\"id\":\"a\xc0\xaf\""), stream.BadUTF8},
		"lone surrogate":        {event(`"id":"a","x":"\ud800"`), stream.BadUTF8},
		"surrogates reversed":   {event(`"id":"a","x":"\udc00\ud800"`), stream.BadUTF8},
		"raw NUL":               {event("\"id\":\"a\x00\""), stream.NulCharacter},
		"escaped NUL":           {event(`"id":"a","x":["\\\u0000"]`), stream.NulCharacter},
		"escaped NUL in a name": {event(`"id":"a","\u0000":1`), stream.NulCharacter},
		"too large":             {event(`"id":"` + strings.Repeat("a", 600) + `"`), stream.TooLarge},
		"no id":                 {event(`"x":1`), stream.MissingID},
		"null id":               {event(`"id":null`), stream.MissingID},
		"empty id":              {event(`"id":""`), stream.MissingID},
		"id is an object":       {event(`"id":{}`), stream.BadType},
		"id is a boolean":       {event(`"id":true`), stream.BadType},
		"no key":                {`{"id":"a","rev":1,` + at + `}`, stream.MissingKey},
		"null key":              {`{"id":"a","rev":1,"key":null,` + at + `}`, stream.MissingKey},
		"empty key":             {`{"id":"a","rev":1,"key":"",` + at + `}`, stream.MissingKey},
		"key is an array":       {`{"id":"a","rev":1,"key":[],` + at + `}`, stream.BadType},
		"no revision":           {`{"id":"a","key":"k",` + at + `}`, stream.BadRevision},
		"null revision":         {`{"id":"a","key":"k","rev":null,` + at + `}`, stream.BadRevision},
		"revision 1.0":          {`{"id":"a","key":"k","rev":1.0,` + at + `}`, stream.BadRevision},
		"revision 1e3":          {`{"id":"a","key":"k","rev":1e3,` + at + `}`, stream.BadRevision},
		"revision true":         {`{"id":"a","key":"k","rev":true,` + at + `}`, stream.BadRevision},
		"revision past int64": {
			`{"id":"a","key":"k","rev":9223372036854775808,` + at + `}`, stream.BadRevision,
		},
		"deleted is text":     {event(`"id":"a","gone":"true"`), stream.BadType},
		"deleted is a number": {event(`"id":"a","gone":1`), stream.BadType},
		"no time":             {`{"id":"a","rev":1,"key":"k"}`, stream.BadTime},
		"time null":           {`{"id":"a","rev":1,"key":"k","at":null}`, stream.BadTime},
		"time without zone": {
			`{"id":"a","rev":1,"key":"k","at":"2024-03-01T12:00:00"}`,
			stream.BadTime,
		},
		"infinity":               {`{"id":"a","rev":1,"key":"k","at":"infinity"}`, stream.BadTime},
		"number for RFC 3339":    {`{"id":"a","rev":1,"key":"k","at":1709294400}`, stream.BadTime},
		"compared NaN":           {event(`"id":"a","amount":"NaN"`), stream.BadNumber},
		"compared infinity":      {event(`"id":"a","amount":"-Infinity"`), stream.BadNumber},
		"tombstone, bad time":    {`{"id":"a","rev":1,"gone":true,"at":"yesterday"}`, stream.BadTime},
		"tombstone, bad key":     {`{"id":"a","rev":1,"gone":true,"key":{}}`, stream.BadType},
		"tombstone, no revision": {`{"id":"a","gone":true}`, stream.BadRevision},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mapper(t, payments)
			got := m.JSON([]byte(test.raw))
			if got.Reason != test.want {
				t.Errorf("reason %q, want %q", got.Reason, test.want)
			}
			kept := test.raw[:min(len(test.raw), payments.MaxEventBytes)]
			if string(got.Raw) != kept {
				t.Errorf("raw %q, want %q", got.Raw, kept)
			}
			if next := m.JSON([]byte(event(`"id":"next"`))); next.Event.ID != "next" {
				t.Errorf("the next record: %+v", next)
			}
		})
	}
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	m := mapper(t, payments)
	for raw, want := range map[string]stream.Event{
		`{"id":12.50,"rev":"-3","key":9007199254740993,"at":"1970-01-01T00:00:00Z"}`: {
			ID: "12.50", Revision: -3, Key: "9007199254740993", HasTime: true, Attributes: `{}`,
		},
		`{"id":"a","rev":9223372036854775807,"key":"k","at":"1970-01-01T00:00:00Z","gone":null}`: {
			ID: "a", Revision: math.MaxInt64, Key: "k", HasTime: true, Attributes: `{}`,
		},
		`{"id":"a","rev":2,"gone":true}`: {ID: "a", Revision: 2, Deleted: true, Attributes: `{}`},
		`{"id":"a","rev":2,"gone":true,"key":null,"at":null,"amount":1e3}`: {
			ID: "a", Revision: 2, Deleted: true, Attributes: `{"amount":1e3}`,
		},
		`{"id":"\\u0000","rev":1,"key":"\ud83d\ude00","at":"1970-01-01T00:00:00Z","amount":"n/a"}`: {
			ID: `\u0000`, Revision: 1, Key: "😀", HasTime: true, Attributes: `{"amount":"n/a"}`,
		},
	} {
		if got := m.JSON([]byte(raw)); got.Reason != "" || got.Event != want {
			t.Errorf("%s\ngot  %q %+v\nwant %+v", raw, got.Reason, got.Event, want)
		}
	}
}

func TestPathsWalkAndLiteralNamesWin(t *testing.T) {
	t.Parallel()
	m := mapper(t, Mapping{
		ID: "data.object.id", Key: []string{"data.k", "plain"}, Time: "at", Omit: []string{"seq"},
		Keep: []string{"plain"},
	})
	read := func(fields string) stream.Record {
		return m.JSON([]byte(`{"plain":"p","at":"1970-01-01T00:00:00Z",` + fields + `}`))
	}
	walked := read(`"seq":5,"data":{"k":"a","object":{"x":1,"id":"i"}}`)
	if e := walked.Event; e.ID != "i" || e.Key != "1:a|1:p" ||
		e.Attributes != `{"data":{"k":"a","object":{"id":"i","x":1}},"plain":"p"}` {
		t.Errorf("walked: %q %+v", walked.Reason, e)
	}
	// Escapes, exponents and empty objects on the way are for the decoder.
	for data, want := range map[string]string{
		`{"k":"a","object":{"a":"\"","b":1e5,"c":{},"id":"i","z":{"id":"no"}}}`: "i",
		`{"b":1e5,"k":"a","object":{"id":7}}`:                                   "7",
		`{"a":{},"k":"a","object":{"id":"\\\""}}`:                               `\"`,
		`{"k":"a","object":{"a":{"id":"no"},"id":"i"},"z":1}`:                   "i",
		`{"k":"a","object":{}}`:                                                 "",
		`{"k":"a","object":{"id2":1,"i":2}}`:                                    "",
	} {
		if r := read(`"data":` + data); r.Event.ID != want {
			t.Errorf("%s: got %q %q, want %q", data, r.Reason, r.Event.ID, want)
		}
	}
	literal := read(`"data.object.id":"lit","data":{"k":"a","object":7}`)
	if e := literal.Event; e.ID != "lit" ||
		e.Attributes != `{"data":{"k":"a","object":7},"plain":"p"}` {
		t.Errorf("literal: %q %+v", literal.Reason, e)
	}
	if r := read(`"data":{"k":"a","object":7}`); r.Reason != stream.MissingID {
		t.Errorf("a walk through a number: %q %+v", r.Reason, r.Event)
	}
}

func TestKeyPartsAreNeverAmbiguous(t *testing.T) {
	t.Parallel()
	m := mapper(t, Mapping{ID: "id", Key: []string{"a", "b"}, Time: "at"})
	key := func(a, b string) string {
		r := m.JSON([]byte(`{"id":1,"at":"1970-01-01T00:00:00Z","a":"` + a + `","b":"` + b + `"}`))
		return r.Event.Key
	}
	if got := key("åbc", "EU"); got != "3:åbc|2:EU" {
		t.Errorf("key %q", got)
	}
	if key("a|1:b", "c") == key("a", "b|1:c") {
		t.Error("two keys encode alike")
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ format, in, want string }{
		{"", `"2024-03-01T12:00:00Z"`, "2024-03-01T12:00:00Z"},
		{"rfc3339", `"2024-03-01T12:00:00.1234567891234-23:59"`, "2024-03-02T11:59:00.123456Z"},
		{"", `"1969-12-31T23:59:59.9999999Z"`, "1969-12-31T23:59:59.999999Z"},
		{"", `"0001-01-01T00:00:00Z"`, "0001-01-01T00:00:00Z"},
		{"", `"9999-12-31T23:59:59.999999Z"`, "9999-12-31T23:59:59.999999Z"},
		{"", `"0001-01-01T00:00:00+00:01"`, ""},
		{"", `"0000-12-31T00:00:00Z"`, ""},
		{"", `"10000-01-01T00:00:00Z"`, ""},
		{"", `"2024-03-01 12:00:00Z"`, ""},
		{"", `"2024-03-01T12:00:00,5Z"`, ""},
		{"", `"2024-03-01T12:00:00.Z"`, ""},
		{"", `"2024-03-01T2:00:00Z"`, ""},
		{"", `"2024-03-01T12:00:00+24:00"`, ""},
		{"", `"2024-03-01T12:00:00+00"`, ""},
		{"", `"2024-02-30T12:00:00Z"`, ""},
		{"", `""`, ""},
		{"unix_s", `1709294400`, "2024-03-01T12:00:00Z"},
		{"unix_s", `"1709294400.1234569"`, "2024-03-01T12:00:00.123456Z"},
		{"unix_s", `-0.0000001`, "1969-12-31T23:59:59.999999Z"},
		{"unix_s", `-1.5`, "1969-12-31T23:59:58.5Z"},
		{"unix_s", `1.7092944e9`, "2024-03-01T12:00:00Z"},
		{"unix_s", `1709294400000000000000e-12`, "2024-03-01T12:00:00Z"},
		{"unix_ms", `1709294400123.456`, "2024-03-01T12:00:00.123456Z"},
		{"unix_us", `1709294400123456`, "2024-03-01T12:00:00.123456Z"},
		{"unix_us", `0`, "1970-01-01T00:00:00Z"},
		{"unix_s", `-0.0`, "1970-01-01T00:00:00Z"},
		{"unix_s", `1709294400000000`, ""},
		{"unix_s", `1e30000`, ""},
		{"unix_s", `1e99999999999`, ""},
		{"unix_us", `99999999999999999999999`, ""},
		{"unix_s", `"12,5"`, ""},
		{"unix_s", `"1."`, ""},
		{"unix_s", `"NaN"`, ""},
		{"unix_s", `true`, ""},
	} {
		m := mapper(t, Mapping{ID: "id", Key: []string{"id"}, Time: "at", TimeFormat: test.format})
		got := m.JSON([]byte(`{"id":1,"at":` + test.in + `}`))
		switch {
		case test.want == "" && got.Reason != stream.BadTime:
			t.Errorf("%s %s: %q %s, want bad_time", test.format, test.in, got.Reason, got.Event.Time)
		case test.want != "" && (got.Reason != "" || got.Event.Time != micros(t, test.want)):
			t.Errorf("%s %s: %q %s, want %s",
				test.format, test.in, got.Reason, got.Event.Time, test.want)
		}
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	m := mapper(t, payments)
	header, err := m.Header([]string{"id", "rev", "key", "at", "gone", "note", "amount"})
	if err != nil {
		t.Fatal(err)
	}
	row := func(cells ...string) stream.Record {
		var bytes [][]byte
		for _, c := range cells {
			bytes = append(bytes, []byte(c))
		}
		return m.CSV(header, bytes, []byte(strings.Join(cells, ",")))
	}
	const at = "1970-01-01T00:00:00Z"
	good := row("a", "2", "k", at, "F", `say "hi"`, "1.10")
	want := stream.Event{
		ID: "a", Revision: 2, Key: "k", HasTime: true,
		Attributes: `{"amount":"1.10","note":"say \"hi\""}`,
	}
	if good.Reason != "" || good.Event != want {
		t.Errorf("got %q %+v", good.Reason, good.Event)
	}
	for _, flag := range []string{"TRUE", "t", "1"} {
		r := row("a", "2", "", "", flag, "", "")
		if r.Reason != "" || !r.Event.Deleted || r.Event.HasTime {
			t.Errorf("flag %s: %q %+v", flag, r.Reason, r.Event)
		}
	}
	for want, got := range map[stream.Reason]stream.Record{
		stream.ShortRow:     row("a", "2", "k", at, "", ""),
		stream.BadRow:       row("a", "2", "k", at, "", "", "", ""),
		stream.MissingID:    row("", "2", "k", at, "", "", ""),
		stream.MissingKey:   row("a", "2", "", at, "", "", ""),
		stream.BadRevision:  row("a", "", "k", at, "", "", ""),
		stream.BadTime:      row("a", "2", "k", "", "", "", ""),
		stream.BadType:      row("a", "2", "k", at, "yes", "", ""),
		stream.BadNumber:    row("a", "2", "k", at, "", "", "nan"),
		stream.NulCharacter: row("a", "2", "k", at, "", "\x00", ""),
		stream.BadUTF8:      row("a", "2", "k", at, "", "\xff", ""),
		stream.TooLarge:     row("a", "2", "k", at, "", strings.Repeat("x", 700), ""),
	} {
		if got.Reason != want {
			t.Errorf("got %q, want %q", got.Reason, want)
		}
	}
	if r := row("a", "2", "k", at, "", `\u0000`, ""); r.Reason != "" {
		t.Errorf("a backslash means nothing in CSV: %q", r.Reason)
	}
}

func TestCSVHeaderFaultsNameTheColumn(t *testing.T) {
	t.Parallel()
	m := mapper(t, payments)
	_, err := m.Header([]string{"id", "id"})
	if err == nil || !strings.Contains(err.Error(), `"id"`) {
		t.Errorf("twice: %v", err)
	}
	_, err = m.Header([]string{"id", "rev", "key"})
	if err == nil || !strings.Contains(err.Error(), `"at"`) {
		t.Errorf("absent: %v", err)
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	m := mapper(t, Mapping{ID: "id", Key: []string{"id"}, Time: "at"})
	values := [][]byte{[]byte(`7`), []byte(`"1970-01-01T00:00:00Z"`), []byte(`[1.10]`)}
	got := m.Row([]string{"id", "at", `a"b`}, values)
	if got.Reason != "" || got.Event.ID != "7" || got.Event.Attributes != `{"a\"b":[1.10]}` {
		t.Errorf("got %q %+v", got.Reason, got.Event)
	}
}

func TestMappingFaultsNameTheField(t *testing.T) {
	t.Parallel()
	for field, mapping := range map[string]Mapping{
		"id":              {Key: []string{"k"}, Time: "t"},
		"key":             {ID: "i", Time: "t"},
		"time:":           {ID: "i", Key: []string{"k"}},
		"time_format":     {ID: "i", Key: []string{"k"}, Time: "t", TimeFormat: "unix"},
		"revision":        {ID: "i", Key: []string{"k"}, Time: "t", Revision: "\xff"},
		"deleted":         {ID: "i", Key: []string{"k"}, Time: "t", Deleted: "\x00"},
		"compare":         {ID: "i", Key: []string{"k"}, Time: "t", Numeric: []string{""}},
		"max_event_bytes": {ID: "i", Key: []string{"k"}, Time: "t", MaxEventBytes: -1},
	} {
		if _, err := New(mapping); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestIDsFitIntoAnIndex has the longest id that is taken, and one byte more.
func TestIDsFitIntoAnIndex(t *testing.T) {
	t.Parallel()
	m, err := New(Mapping{ID: "id", Key: []string{"k"}, Time: "at"})
	if err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]stream.Reason{2048: "", 2049: stream.TooLarge} {
		line := `{"id":"` + strings.Repeat("x", length) + `","k":"1","at":"2026-01-10T12:00:00Z"}`
		if got := m.JSON([]byte(line)).Reason; got != want {
			t.Errorf("an id of %d bytes: %q, want %q", length, got, want)
		}
	}
}
