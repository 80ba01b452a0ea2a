package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

const good = `name: payments-risk
database: ${DB}
rule:
  version: v1
  join: left
  before: 0s
  after: 10m
  lateness: 1d12h
  compare:
    - {left: amount, right: amount, tolerance: "0.01"}
left:
  source: {type: file, path: payments.ndjson}
  id: payment_id
  revision: revision
  key: [account, currency]
  time: occurred_at
right:
  source:
    type: postgres
    table: public.signals
    cursor: seq
    transaction: txid
  id: signal_id
  key: [account, currency]
  time: at
`

func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func parse(text string) (*Config, error) {
	return Parse("/etc/tally.yaml", []byte(text), environment("DB", "postgres://u:pw@h/d"))
}

func TestParseFillsDefaults(t *testing.T) {
	t.Parallel()
	c, err := parse(good)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Database.Reveal(); got != "postgres://u:pw@h/d" {
		t.Errorf("database %q", got)
	}
	if c.Schema != "tally" || c.Shards != 1 || c.LeaseFor.Std() != 10*time.Second ||
		c.Epoch.MaxEvents != 20000 ||
		c.Epoch.MaxDelay.Std() != 50*time.Millisecond || c.State.CacheRows != 2_000_000 ||
		c.Retain.For.Std() != 24*time.Hour || c.Archive.Keep != 2 ||
		c.Limits.MaxEventBytes != 1<<20 || c.Rule.Provisional != "at-window-close" {
		t.Errorf("defaults: %+v", c)
	}
	if c.Rule.Lateness.Std() != 36*time.Hour {
		t.Errorf("lateness %s", c.Rule.Lateness)
	}
	if c.Left.Source[0].Name != "payments.ndjson" || c.Right.Source[0].Name != "public.signals" {
		t.Errorf("names %v %v", c.Left.names(), c.Right.names())
	}
	if got := c.Inert(); len(got) != 0 {
		t.Errorf("inert %v", got)
	}
}

func TestDatabaseFallsBackToTheEnvironment(t *testing.T) {
	t.Parallel()
	text := strings.Replace(good, "database: ${DB}\n", "", 1)
	c, err := Parse("tally.yaml", []byte(text), environment("DATABASE_URL", "postgres://x/y"))
	if err != nil || c.Database.Reveal() != "postgres://x/y" {
		t.Errorf("database %q, %v", c.Database.Reveal(), err)
	}
	c, err = Parse("tally.yaml", []byte(text), environment())
	if err != nil || c.Database.Reveal() != "" {
		t.Errorf("database %q, %v", c.Database.Reveal(), err)
	}
}

func TestMistakesNameFileLineAndKey(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, from, to, want string }{
		{"unknown key", "  join: left", "  joyn: left", "tally.yaml:5: rule.joyn: unknown key"},
		{"unknown top key", "name:", "nane:", "tally.yaml:1: nane: unknown key"},
		{
			"unknown key of a source", "cursor: seq", "curser: seq",
			"tally.yaml:21: right.source.curser: unknown key",
		},
		{"key twice", "  join: left", "  version: v2", "tally.yaml:5: "},
		{"negative window", "before: 0s", "before: -1s", "tally.yaml:6: rule.before: -1s is negative"},
		{"no unit", "after: 10m", "after: 600", `tally.yaml:7: rule.after: "600" is no duration`},
		{"nanoseconds", "after: 10m", "after: 10ns", "tally.yaml:7: rule.after: 10ns is not a whole"},
		{
			"join", "join: left", "join: outer",
			`tally.yaml:5: rule.join: "outer": want inner, left, right or full`,
		},
		{"tolerance", `"0.01"`, `"a cent"`, `tally.yaml:10: rule.compare[1]: tolerance "a cent"`},
		{
			"key type", "key: [account, currency]\n  time: at", "key: {a: b}\n  time: at",
			"tally.yaml:24: right.key: want a field name",
		},
		{
			"key counts", "key: [account, currency]\n  time: at", "key: account\n  time: at",
			"tally.yaml:24: right.key: 1 fields, but left.key has 2",
		},
		{"missing id", "  id: payment_id\n", "", "tally.yaml:11: left.id: missing"},
		{
			"unset variable", "name: payments-risk", "name: ${NOPE}",
			"tally.yaml:1: name: environment variable NOPE is not set",
		},
		{
			"source type", "type: file", "type: kafka",
			`tally.yaml:12: left.source.type: "kafka": want file or postgres`,
		},
		{
			"other type's key", "path: payments.ndjson", "path: a, table: b",
			"tally.yaml:12: left.source.table: not an option of a file source",
		},
		{
			"nothing to acknowledge", "path: payments.ndjson", "path: a, acknowledge_behind: 1",
			"tally.yaml:12: left.source.acknowledge_behind: a file source has nothing",
		},
		{
			"no transaction column", "    transaction: txid\n", "",
			"tally.yaml:18: right.source.transaction: missing",
		},
		{"shards", "name:", "shards: 0\nname:", "tally.yaml:1: shards: 0: want 1 to 1024"},
		{"short lease", "name:", "lease_for: 1ms\nname:", "tally.yaml:1: lease_for: 1ms: want 200ms"},
		{"word for a number", "name:", "shards: many\nname:", "tally.yaml:1: shards: want a whole"},
		{"list for a map", "name:", "epoch: [1]\nname:", "tally.yaml:1: epoch: want"},
		{"retain", "name:", "retain: {epochs: 1}\nname:", "tally.yaml:1: retain.epochs: 1: want 2"},
		{
			"archive every", "name:", "archive: {url: file:///a, every: 1ms}\nname:",
			"tally.yaml:1: archive.every: 1ms: want 1s or more",
		},
		{
			"archive keep", "name:", "archive: {url: file:///a, keep: 1}\nname:",
			"tally.yaml:1: archive.keep: 1: want 2",
		},
		{
			"archive without URL", "name:", "archive: {every: 1h}\nname:",
			"tally.yaml:1: archive.url: want file:///directory or s3://bucket/prefix",
		},
		{"archive URL", "name:", "archive: {url: /var/lib}\nname:", "tally.yaml:1: archive.url: want"},
		{"listen", "name:", "http: {listen: here}\nname:", `tally.yaml:1: http.listen: "here"`},
		{
			"size", "name:", "limits: {max_event_bytes: 1 stone}\nname:",
			`tally.yaml:1: limits.max_event_bytes: "1 stone" is no size`,
		},
		{"schema", "name:", "schema: pg_mine\nname:", `tally.yaml:1: schema: "pg_mine"`},
		{"syntax", "name: payments-risk", "name: [", "tally.yaml:"},
		{"empty", good, "", "tally.yaml:1: the file is empty"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(good, c.from) {
				t.Fatalf("%q is not in the file", c.from)
			}
			_, err := parse(strings.Replace(good, c.from, c.to, 1))
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestSourcesOfOneNameNeedNames(t *testing.T) {
	t.Parallel()
	text := strings.Replace(good, "source: {type: file, path: payments.ndjson}",
		"source:\n  - {type: file, path: a/p.ndjson}\n  - {type: file, path: b/p.ndjson}", 1)
	_, err := parse(text)
	want := `tally.yaml:14: left.source[2]: a second source called "p.ndjson" on this side; set name:`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	text = strings.Replace(text, "path: b/p.ndjson", "path: b/p.ndjson, name: b", 1)
	if _, err := parse(text); err != nil {
		t.Error(err)
	}
}

func TestEveryMistakeIsReported(t *testing.T) {
	t.Parallel()
	text := strings.Replace(good, "join: left", "join: outer", 1)
	text = strings.Replace(text, "  time: at\n", "", 1)
	_, err := parse(text)
	if err == nil || !strings.Contains(err.Error(), "rule.join") ||
		!strings.Contains(err.Error(), "right.time") {
		t.Errorf("got %v, want both mistakes", err)
	}
}

func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	const canary = "canary-7f3a"
	text := strings.Replace(good, "cursor: seq", "cursor: seq\n    database: ${SECRET}", 1)
	lookup := environment("DB", "postgres://u:"+canary+"@h/d", "SECRET", "password="+canary)
	c, err := Parse("tally.yaml", []byte(text), lookup)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "db", c.Database, "all", *c)
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{
		log.String(), string(asJSON), c.String(), fmt.Sprintf("%v %+v %#v", c, *c, *c),
		fmt.Sprintf("%v %+v %#v %s %q", c.Right, c.Right, c.Right, c.Right.Source, c.Database),
	}
	broken := []string{
		"postgres://u:" + canary + "@h:port/d", "host=h password=" + canary + " port=x",
		canary + "://", "postgres://u:" + canary + "%zz@h/d",
	}
	for _, value := range broken {
		_, err := Parse("tally.yaml", []byte(good), environment("DB", value))
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%q was taken", value)
			continue
		}
		shown = append(shown, err.Error())
	}
	for _, line := range []string{
		"database: [" + canary, "database: {a: " + canary + "}",
		"database: \"" + canary, "epoch: " + canary, "shards: " + canary,
	} {
		if _, err := parse(line + "\n" + good); err != nil {
			shown = append(shown, err.Error())
		}
	}
	for _, text := range shown {
		if strings.Contains(text, canary) {
			t.Errorf("secret shown: %s", text)
		}
	}
}

func TestTextKeepsItsDigits(t *testing.T) {
	t.Parallel()
	text := strings.Replace(good, "version: v1", "version: 1.10", 1)
	text = strings.Replace(text, `"0.01"`, "0.10", 1)
	c, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if c.Rule.Version != "1.10" || c.Rule.Compare[0].Tolerance != "0.10" {
		t.Errorf("version %q, tolerance %q", c.Rule.Version, c.Rule.Compare[0].Tolerance)
	}
}

func TestRuleJSONIsCanonical(t *testing.T) {
	t.Parallel()
	c, err := parse(good)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"after_us":600000000,"before_us":0,` +
		`"compare":[{"left":"amount","right":"amount","tolerance":"0.01"}],` +
		`"join":"left","lateness_us":129600000000,"left_key":["account","currency"],` +
		`"provisional":"at-window-close","right_key":["account","currency"],"version":"v1"}`
	if got := c.RuleJSON(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestMappingKeepsWhatIsCompared(t *testing.T) {
	t.Parallel()
	text := strings.Replace(good, "{left: amount,", "{left: amount, right: total, "+
		"tolerance: 5%}\n    - {left: currency, right: currency}\n    - {left: b,", 1)
	c, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	left, right := c.Mapping(stream.Left), c.Mapping(stream.Right)
	if want := []string{"amount", "b"}; !slices.Equal(left.Numeric, want) {
		t.Errorf("numeric on the left %v, want %v", left.Numeric, want)
	}
	if want := []string{"total", "amount"}; !slices.Equal(right.Numeric, want) {
		t.Errorf("numeric on the right %v, want %v", right.Numeric, want)
	}
	if want := []string{"total", "currency", "amount"}; !slices.Equal(right.Keep, want) {
		t.Errorf("kept on the right %v, want %v", right.Keep, want)
	}
}

func TestDurationsAndSizes(t *testing.T) {
	t.Parallel()
	durations := map[string]time.Duration{
		"0": 0, "0s": 0, "10d": 240 * time.Hour, "1d12h": 36 * time.Hour, "1.5h": 90 * time.Minute,
	}
	for text, want := range durations {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "1w", "-1d", "1d-1h", "1dd", "200000d", "106751d24h", "5"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
	sizes := map[string]int64{"17": 17, "64KB": 64000, "1MiB": 1 << 20, "2 gib": 2 << 30}
	for text, want := range sizes {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MB", "1TB", "99999999999GiB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestTheTemplateIsAConfiguration(t *testing.T) {
	t.Parallel()
	for name, template := range map[string]Template{
		"init": InitTemplate(),
		"tables": {
			Name: "demo", Database: `"postgres://u@h/d"`, Schema: `"My schema"`,
			Left:  "{type: postgres, table: a.b, cursor: seq, transaction: txid}",
			Right: "{type: postgres, table: a.c, cursor: seq, transaction: txid}",
		},
	} {
		c, err := Parse("tally.yaml", []byte(template.Text()), environment())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Name != template.Name || string(c.Rule.Version) != "v1" || len(c.Rule.Compare) != 2 ||
			c.Rule.After.Std() != 10*time.Minute || c.Left.OutOfOrderness.Std() != 10*time.Second {
			t.Errorf("%s: read as %+v", name, *c)
		}
		if err := c.JoinRule().Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for line := range strings.SplitSeq(template.Text(), "\n") {
			if len(line) > 100 {
				t.Errorf("%s: over 100 columns: %s", name, line)
			}
		}
	}
}
