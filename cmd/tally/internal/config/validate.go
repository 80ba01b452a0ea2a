package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/compare"
	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/store/archive"
)

// identifierBytesMax is Postgres' limit on a name.
const identifierBytesMax = 63

// shardsMax is more than anyone has workers for: each shard reads every record. A lease under
// leaseMin would be lost to a busy moment, and one over leaseMax keep a dead worker's shards idle.
const (
	shardsMax = 1024
	leaseMin  = 200 * time.Millisecond
	leaseMax  = time.Hour
)

// Snapshots read the whole state each time.
const (
	archiveEveryMin = time.Second
	archiveKeepMax  = 1_000_000
)

// checker gathers mistakes, so that a user sees all of them at once.
type checker struct {
	config *Config
	errs   []error
}

func (c *checker) failf(key, format string, args ...any) {
	c.errs = append(c.errs, &Error{
		File: c.config.name(), Line: c.config.keys.line(key), Key: key,
		Problem: fmt.Sprintf(format, args...),
	})
}

func (c *checker) require(key, value, what string) {
	if value == "" {
		c.failf(key, "missing: %s", what)
	}
}

func (c *checker) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.failf(key, "%q: want %s", value, alternatives(allowed))
	}
}

func (c *checker) between(key string, value, low, high int64) {
	if value < low || value > high {
		c.failf(key, "%d: want %d to %d", value, low, high)
	}
}

func alternatives(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// validate finds values that no run could work with.
func (c *Config) validate() error {
	v := &checker{config: c}
	v.require("name", c.Name, "a name for this reconciliation, such as payments-risk")
	v.schema(c.Schema)
	v.database("database", c.Database)
	v.rule(&c.Rule)
	v.side("left", &c.Left)
	v.side("right", &c.Right)
	v.bounds(c)
	v.archive(&c.Archive)
	v.http(c.HTTP.Listen)
	return errors.Join(v.errs...)
}

func (c *checker) schema(name string) {
	switch {
	case name == "":
		c.failf("schema", "missing: a schema name, such as tally")
	case len(name) > identifierBytesMax || strings.ContainsRune(name, 0):
		c.failf("schema", "%q: Postgres takes names of up to 63 bytes", name)
	case strings.HasPrefix(name, "pg_"):
		c.failf("schema", "%q: names that begin with pg_ belong to Postgres", name)
	}
}

// database never shows the value, nor what the parser says of it: both may hold a password.
func (c *checker) database(key string, value Secret) {
	if _, err := pgx.ParseConfig(value.Reveal()); err != nil {
		c.failf(key, "not a Postgres connection string: want postgres://user@host:5432/database "+
			"or host=… dbname=… (empty: the PG variables)")
	}
}

func (c *checker) rule(r *Rule) {
	c.require("rule.version", string(r.Version), "it enters every identity; name it, such as v1")
	if strings.ContainsRune(string(r.Version), 0) {
		c.failf("rule.version", "contains a NUL character")
	}
	if r.Join == "" {
		c.failf("rule.join", "missing: inner, left, right or full")
	} else {
		c.oneOf("rule.join", r.Join, "inner", "left", "right", "full")
	}
	c.oneOf("rule.provisional", r.Provisional, "at-window-close", "eager", "never")
	if !c.config.keys.has("rule.before") && !c.config.keys.has("rule.after") {
		c.failf("rule.after", "missing: give the window, before or after or both")
	}
	for i, f := range r.Compare {
		key := fmt.Sprintf("rule.compare[%d]", i+1)
		if _, err := compare.New([]compare.Field{f.field()}); err != nil {
			c.failf(key, "%s", strings.TrimPrefix(err.Error(), "compare field 1: "))
		}
	}
}

func (c *checker) side(name string, s *Side) {
	if !c.config.keys.has(name) {
		c.failf(name, "missing: the %s side, with source, id, key and time", name)
		return
	}
	c.require(name+".id", s.ID, "the field that identifies an event")
	c.require(name+".time", s.Time, "the field that holds the event time")
	if len(s.Key) == 0 || slices.Contains(s.Key, "") {
		c.failf(name+".key", "missing: the field or fields to join on")
	}
	formats := []string{"", "rfc3339", "unix_s", "unix_ms", "unix_us"}
	if !slices.Contains(formats, s.TimeFormat) {
		c.oneOf(name+".time_format", s.TimeFormat, formats[1:]...)
	}
	other := &c.config.Left
	if s == other {
		other = &c.config.Right
	}
	if name == "right" && len(s.Key) != len(other.Key) && len(s.Key) > 0 && len(other.Key) > 0 {
		c.failf("right.key", "%d fields, but left.key has %d: they are compared one by one",
			len(s.Key), len(other.Key))
	}
	if len(s.Source) == 0 {
		c.failf(name+".source", "missing: {type: file, path: …} or {type: postgres, table: …}")
	}
	c.sources(name, s)
}

func (c *checker) sources(side string, s *Side) {
	names := map[string]bool{}
	for i := range s.Source {
		key := side + ".source"
		if c.config.keys.has(key + "[1]") {
			key += "[" + strconv.Itoa(i+1) + "]"
		}
		source := &s.Source[i]
		c.source(key, source)
		if source.Name != "" && names[source.Name] {
			c.failf(key, "a second source called %q on this side; set name: to tell them apart",
				source.Name)
		}
		names[source.Name] = true
		if source.Name == join.QuarantineSource {
			c.failf(key, "the name %q is taken by released records; set another name:", source.Name)
		}
	}
}

// sourceKeys lists which keys a type takes besides type and name.
var sourceKeys = map[string][]string{
	TypeFile:     {"path", "format", "delimiter"},
	TypePostgres: {"table", "cursor", "transaction", "consistency", "database"},
}

func (c *checker) source(key string, s *Source) {
	if s.Type == "" {
		c.failf(key+".type", "missing: file or postgres")
		return
	}
	if sourceKeys[s.Type] == nil {
		c.oneOf(key+".type", s.Type, TypeFile, TypePostgres)
		return
	}
	for other, keys := range sourceKeys {
		for _, k := range keys {
			if other != s.Type && c.config.keys.has(key+"."+k) {
				c.failf(key+"."+k, "not an option of a %s source", s.Type)
			}
		}
	}
	if c.config.keys.has(key + ".acknowledge_behind") {
		c.failf(key+".acknowledge_behind", "a %s source has nothing to acknowledge; remove the key",
			s.Type)
	}
	if s.Type == TypeFile {
		c.fileSource(key, s)
	} else {
		c.postgresSource(key, s)
	}
}

func (c *checker) fileSource(key string, s *Source) {
	c.require(key+".path", s.Path, "the file to read")
	if s.Format != "" {
		c.oneOf(key+".format", s.Format, "ndjson", "csv")
	}
	if s.Delimiter != "" && (len(s.Delimiter) != 1 || strings.ContainsAny(s.Delimiter, "\"\r\n\x00")) {
		c.failf(key+".delimiter", "%q: want one character, such as ; or \\t", s.Delimiter)
	}
}

func (c *checker) postgresSource(key string, s *Source) {
	c.require(key+".table", s.Table, "the table to read, such as public.payments")
	c.require(key+".cursor", s.Cursor, "a column that orders the rows and is unique")
	if s.Consistency != "" {
		c.oneOf(key+".consistency", s.Consistency, "transaction", "weak")
	}
	weak := s.Consistency == "weak"
	switch {
	case s.Transaction == "" && !weak:
		c.failf(key+".transaction", "missing: a column xid8 default pg_current_xact_id(); without "+
			"one rows that commit out of order are lost (consistency: weak accepts that)")
	case s.Transaction != "" && weak:
		c.failf(key+".consistency", "weak is for tables without a transaction column; remove one")
	}
	if s.Database != "" {
		c.database(key+".database", s.Database)
	}
}

func (c *checker) bounds(cfg *Config) {
	c.between("epoch.max_events", int64(cfg.Epoch.MaxEvents), 1, 1_000_000)
	c.between("state.cache_rows", int64(cfg.State.CacheRows), 0, 1_000_000_000)
	c.between("limits.max_event_bytes", int64(cfg.Limits.MaxEventBytes), 1, 256<<20)
	c.between("limits.max_pairs_per_key", int64(cfg.Limits.MaxPairsPerKey), 1, 1_000_000_000)
	c.between("retain.epochs", int64(cfg.Retain.Epochs), 2, 1_000_000_000)
	if cfg.Epoch.MaxDelay <= 0 {
		c.failf("epoch.max_delay", "want more than 0")
	}
	c.between("shards", int64(cfg.Shards), 1, shardsMax)
	if lease := cfg.LeaseFor.Std(); lease < leaseMin || lease > leaseMax {
		c.failf("lease_for", "%s: want %s to %s", cfg.LeaseFor, leaseMin, leaseMax)
	}
	if cfg.Limits.MaxSkew > cfg.Limits.MaxAhead {
		c.failf("limits.max_skew", "%s is more than limits.max_ahead (%s)", cfg.Limits.MaxSkew,
			cfg.Limits.MaxAhead)
	}
}

// archive says of the URL what it should be, but not what it is: it may hold a secret.
func (c *checker) archive(a *Archive) {
	if a.Every.Std() < archiveEveryMin {
		c.failf("archive.every", "%s: want %s or more", a.Every, archiveEveryMin)
	}
	c.between("archive.keep", int64(a.Keep), archive.KeepMin, archiveKeepMax)
	if !c.config.keys.has("archive") {
		return
	}
	if _, err := archive.Open(a.URL.Reveal(), a.Keep); err != nil {
		c.failf("archive.url", "want file:///directory or s3://bucket/prefix, with region=, endpoint= "+
			"or insecure= behind a ? where needed; credentials come from the environment")
	}
}

func (c *checker) http(listen string) {
	if listen == "" {
		if c.config.keys.has("http") {
			c.failf("http.listen", `missing: an address such as "127.0.0.1:9464"`)
		}
		return
	}
	_, port, err := net.SplitHostPort(listen)
	if n, convErr := strconv.ParseUint(port, 10, 16); err != nil || convErr != nil || n == 0 {
		c.failf("http.listen", `%q: want host:port, such as "127.0.0.1:9464"`, listen)
	}
}
