package main

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/testenv"
)

// badConfig is the reconciliation NAME of left.FORMAT and right.ndjson; amounts are compared.
const badConfig = `name: %q
rule: {version: v1, join: full, before: 10m, after: 10m, lateness: 5m,
  compare: [{left: amount, right: amount, tolerance: "0"}]}
left: {source: {type: file, path: left.%s}, id: id, revision: rev, key: key, time: time,
  deleted: del}
right: {source: {type: file, path: right.ndjson}, id: id, revision: rev, key: key, time: time}
limits: {max_event_bytes: 256B}
`

const rightPartners = `{"id":"h1","rev":1,"key":"k1","time":"2026-01-10T12:00:00Z","amount":1}
{"id":"h2","rev":1,"key":"k2","time":"2026-01-10T12:02:00Z","amount":1}
`

// badInput is a record between two good ones, and why it is set aside. Its raw bytes are those of
// the record where raw is empty.
type badInput struct{ name, record, reason, raw string }

// badLine writes a line of NDJSON that is good but for the fields replaced; an empty value leaves
// the field out.
func badLine(replaced ...string) string {
	fields := [][2]string{
		{"id", `"bad"`},
		{"rev", "1"},
		{"key", `"k3"`},
		{"time", `"2026-01-10T12:01:00Z"`},
		{"amount", "1"},
	}
	for i := 0; i < len(replaced); i += 2 {
		at := slices.IndexFunc(fields, func(f [2]string) bool { return f[0] == replaced[i] })
		if at < 0 {
			fields = append(fields, [2]string{})
			at = len(fields) - 1
		}
		fields[at] = [2]string{replaced[i], replaced[i+1]}
	}
	var texts []string
	for _, f := range fields {
		if f[1] != "" {
			texts = append(texts, fmt.Sprintf("%q:%s", f[0], f[1]))
		}
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func badLines() []badInput {
	long := badLine("note", `"`+strings.Repeat("x", 300)+`"`)
	ahead := time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	return []badInput{
		{"not JSON", `{"id": half a li`, "not_json", ""},
		{"a bare NaN", badLine("amount", "NaN"), "not_json", ""},
		{"two values", badLine() + badLine(), "not_json", ""},
		{"a list", `["id","bad"]`, "not_object", ""},
		{"a number", `12`, "not_object", ""},
		{"null", `null`, "not_object", ""},
		{"no id", badLine("id", ""), "missing_id", ""},
		{"null id", badLine("id", "null"), "missing_id", ""},
		{"empty id", badLine("id", `""`), "missing_id", ""},
		{"no key", badLine("key", ""), "missing_key", ""},
		{"null key", badLine("key", "null"), "missing_key", ""},
		{"empty key", badLine("key", `""`), "missing_key", ""},
		{"no time", badLine("time", ""), "bad_time", ""},
		{"id of a wrong type", badLine("id", `{"a":1}`), "bad_type", ""},
		{"key of a wrong type", badLine("key", `["k3"]`), "bad_type", ""},
		{"key that is a truth", badLine("key", "true"), "bad_type", ""},
		{"deleted of a wrong type", badLine("del", `"yes"`), "bad_type", ""},
		{"time of a wrong type", badLine("time", "12"), "bad_time", ""},
		{"escaped NUL in the id", badLine("id", `"a\u0000b"`), "nul_character", ""},
		{"escaped NUL in an attribute", badLine("note", `"\u0000"`), "nul_character", ""},
		{"escaped NUL in a name", `{"a\u0000":` + badLine() + `}`, "nul_character", ""},
		{"a NUL byte", badLine("note", "\"\x00\""), "nul_character", ""},
		{"invalid UTF-8", badLine("note", "\"\xff\xfe\""), "bad_utf8", ""},
		{"half a surrogate", badLine("note", `"\ud800"`), "bad_utf8", ""},
		{"NaN compared", badLine("amount", `"NaN"`), "bad_number", ""},
		{"Infinity compared", badLine("amount", `"-Infinity"`), "bad_number", ""},
		{"over the limit", long, "too_large", long[:256]},
		{"a name twice", strings.TrimSuffix(badLine(), "}") + `,"amount":1}`, "duplicate_field", ""},
		{"local time", badLine("time", `"2026-01-10T12:01:00"`), "bad_time", ""},
		{"year 0", badLine("time", `"0000-12-31T23:59:59Z"`), "bad_time", ""},
		{"year 10000", badLine("time", `"10000-01-01T00:00:00Z"`), "bad_time", ""},
		{"infinite time", badLine("time", `"infinity"`), "bad_time", ""},
		{"no revision", badLine("rev", ""), "bad_revision", ""},
		{"broken revision", badLine("rev", "1.5"), "bad_revision", ""},
		{"revision in words", badLine("rev", `"two"`), "bad_revision", ""},
		{"revision over 64 bits", badLine("rev", "9223372036854775808"), "bad_revision", ""},
		{
			"conflicting revision", badLine("id", `"g1"`, "key", `"k1"`, "amount", "2"),
			"conflicting_revision", "",
		},
		{"far future", badLine("time", `"`+ahead+`"`), "far_future", ""},
	}
}

// TestBadLinesAreSetAsideWhole uses one database with a reconciliation for each kind of bad line.
func TestBadLinesAreSetAsideWhole(t *testing.T) {
	t.Parallel()
	db := testenv.DB(t)
	good := func(id, key, at string) string {
		return badLine("id", `"`+id+`"`, "key", `"`+key+`"`, "time", `"2026-01-10T`+at+`Z"`) + "\n"
	}
	for _, bad := range badLines() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			p := newProjectIn(t, db, fmt.Sprintf(badConfig, bad.name, "ndjson"))
			p.append(t, "left.ndjson",
				good("g1", "k1", "12:00:00")+bad.record+"\n"+good("g2", "k2", "12:02:00"))
			p.checkSetAside(t, &bad)
		})
	}
}

func TestBadRowsAreSetAsideWhole(t *testing.T) {
	t.Parallel()
	db := testenv.DB(t)
	for _, bad := range []badInput{
		{"too few columns", "bad,1,k3", "short_row", ""},
		{"too many columns", "bad,1,k3,2026-01-10T12:01:00Z,,1,more,,", "bad_row", ""},
		{"a stray quote", `bad,1,k"3,2026-01-10T12:01:00Z,,1,`, "bad_row", ""},
		{"no id", ",1,k3,2026-01-10T12:01:00Z,,1,", "missing_id", ""},
		{"no key", "bad,1,,2026-01-10T12:01:00Z,,1,", "missing_key", ""},
		{"no time", "bad,1,k3,,,1,", "bad_time", ""},
		{"local time", "bad,1,k3,2026-01-10 12:01:00,,1,", "bad_time", ""},
		{"deleted maybe", "bad,1,k3,2026-01-10T12:01:00Z,maybe,1,", "bad_type", ""},
		{"no revision", "bad,,k3,2026-01-10T12:01:00Z,,1,", "bad_revision", ""},
		{"broken revision", "bad,1.0,k3,2026-01-10T12:01:00Z,,1,", "bad_revision", ""},
		{"a NUL byte", "bad,1,k3,2026-01-10T12:01:00Z,,1,\x00", "nul_character", ""},
		{"invalid UTF-8", "bad,1,k3,2026-01-10T12:01:00Z,,1,\xff", "bad_utf8", ""},
		{"NaN compared", "bad,1,k3,2026-01-10T12:01:00Z,,nan,", "bad_number", ""},
		{
			"over the limit", "bad," + strings.Repeat("1", 300), "too_large",
			"bad," + strings.Repeat("1", 252),
		},
		{"conflicting revision", "g1,1,k1,2026-01-10T12:00:00Z,,2,", "conflicting_revision", ""},
	} {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			p := newProjectIn(t, db, fmt.Sprintf(badConfig, bad.name, "csv"))
			p.append(t, "left.csv", "id,rev,key,time,del,amount,note\n"+
				"g1,1,k1,2026-01-10T12:00:00Z,,1,\n"+bad.record+"\n"+
				"g2,1,k2,2026-01-10T12:02:00Z,f,1,\n")
			p.checkSetAside(t, &bad)
		})
	}
}

// checkSetAside runs over the one bad record and the good ones around it.
func (p *project) checkSetAside(t *testing.T, bad *badInput) {
	t.Helper()
	p.append(t, "right.ndjson", rightPartners)
	p.tally(t, "run", "--until-end")
	raw := bad.raw
	if raw == "" {
		raw = bad.record
	}
	of := ` where reconciliation = '` + bad.name + `'`
	p.expect(t, "quarantine", `select concat_ws(' ', side, source ~ '^left', reason, status,
		encode(raw, 'hex')) from tally.quarantined`+of,
		"left t "+bad.reason+" open "+hex.EncodeToString([]byte(raw)))
	p.expect(t, "active rows", activeRows+of, "matched g1/1 h1/1", "matched g2/1 h2/1")
	p.expect(t, "counts", `select concat_ws(' ', sum(read), sum(accepted), sum(quarantined))
		from tally.epochs`+of, "5 4 1")
}

func TestAThousandBadLinesHoldUpNothing(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(badConfig, "bad", "ndjson")+"epoch: {max_events: 100}\n")
	first := badLine("id", `"g1"`, "key", `"k1"`, "time", `"2026-01-10T12:00:00Z"`)
	last := badLine("id", `"g2"`, "key", `"k2"`, "time", `"2026-01-10T12:02:00Z"`)
	p.append(t, "left.ndjson", first+"\n"+strings.Repeat("no JSON\n", 1000)+last+"\n")
	p.append(t, "right.ndjson", rightPartners)
	p.tally(t, "run", "--until-end")
	p.expect(t, "quarantine", `select reason || ' ' || count(*) || ' ' || count(distinct position)
		from tally.quarantined group by reason`, "not_json 1000 1000")
	p.expect(t, "active rows", activeRows, "matched g1/1 h1/1", "matched g2/1 h2/1")
	p.expect(t, "counts", "select sum(read)::text from tally.epochs", "1004")
}

func TestLargeNumbersStayExact(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(badConfig, "bad", "ndjson"))
	p.append(t, "left.ndjson",
		badLine("id", "9007199254740993", "amount", "9007199254740993.10")+"\n"+
			badLine("id", "9007199254740992", "key", `"k4"`, "amount", "9007199254740993")+"\n")
	p.append(t, "right.ndjson",
		badLine("id", `"r1"`, "amount", "9007199254740992.10")+"\n"+
			badLine("id", `"r2"`, "key", `"k4"`, "amount", "9007199254740993")+"\n")
	p.tally(t, "run", "--until-end")
	p.expect(t, "buffer", "select id || ' ' || attributes::text from tally.buffer where side = 'left'",
		`9007199254740992 {"amount":9007199254740993}`,
		`9007199254740993 {"amount":9007199254740993.10}`)
	p.expect(t, "pairs", `select concat_ws(' ', left_id, right_id, verdict,
		differences -> 0 ->> 'difference') from tally.results`,
		"9007199254740993 r1 differ -1", "9007199254740992 r2 agree")
}

func TestHotKeyIsFlaggedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	p := newProject(t, strings.Replace(fmt.Sprintf(badConfig, "bad", "ndjson"),
		"max_event_bytes: 256B", "max_pairs_per_key: 4", 1))
	for i := range 4 {
		for _, side := range []string{"left", "right"} {
			for _, key := range []string{"hot", fmt.Sprint("k", i)} {
				p.append(t, side+".ndjson", badLine("id", fmt.Sprintf("%q", fmt.Sprint(key, "-", i)),
					"key", fmt.Sprintf("%q", key))+"\n")
			}
		}
	}
	p.tally(t, "run", "--until-end")
	p.expect(t, "pairs", `select key || ' ' || count(*) from tally.results where kind = 'pair'
		group by key`, "hot 4", "k0 1", "k1 1", "k2 1", "k3 1")
	p.expect(t, "flagged", `select (count(*) > 0) || ' ' || string_agg(distinct reason, ',') || ' ' ||
		bool_and(convert_from(raw, 'UTF8')::jsonb ->> 'key' = 'hot') from tally.quarantined`,
		"true hot_key true")
	p.expect(t, "counts", "select sum(accepted + quarantined)::text from tally.epochs", "16")
}
