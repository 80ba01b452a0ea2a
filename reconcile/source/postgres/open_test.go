package postgres

import (
	"strings"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

func TestATableThatIsNotTheOneItWasStops(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable, insert("a"), insert("b"))
	bySound, byWeak := open(t, sound(db), "", ""), open(t, weak(db), "", "")
	soundAt, weakAt := check(t, bySound, "a", "b"), check(t, byWeak, "a", "b")
	reopen := func(config Config, position, identity string) error {
		_, err := source(t, config).Open(t.Context(), position, identity)
		return err
	}
	isError(t, reopen(sound(db), weakAt, ""), stream.ErrPositionLost, "doesn't fit")
	isError(t, reopen(weak(db), weakAt, bySound.Identity()), stream.ErrPositionLost, "it was")
	isError(t, reopen(weak(db), "77", ""), stream.ErrPositionLost, "ends before 77")
	isError(t, reopen(sound(db), "99999999999/1", ""), stream.ErrPositionLost, "next transaction")
	isError(t, reopen(sound(db), "%/1", ""), stream.ErrPositionLost, "none of this table")

	exec(t, db, "delete from public.risks where id = 'b'")
	isError(t, reopen(weak(db), weakAt, byWeak.Identity()), stream.ErrPositionLost, "ends before 2")
	if err := reopen(sound(db), soundAt, bySound.Identity()); err != nil {
		t.Errorf("a deleted row: %v", err)
	}
	exec(t, db, "drop table public.risks")
	isError(t, reopen(sound(db), soundAt, ""), stream.ErrUnusable, "none of this name")
	exec(t, db, soundTable)
	isError(t, reopen(sound(db), soundAt, bySound.Identity()), stream.ErrPositionLost, "it was")
}

func TestUnusableTablesAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable, `create type public.mood as enum ('a');
		create table public.odd (seq bigint, txid bigint default 1, id text, at text,
			m public.mood default 'a', xid xid8 default pg_current_xact_id());`)
	for part, change := range map[string]func(*Config){
		`no column "nope"`: func(c *Config) { c.Cursor = "nope" },
		`is bigint`:        func(c *Config) { c.Table = "public.odd" },
		`"zone"`:           func(c *Config) { c.Mapping.Time = "zone" },
		"none of this":     func(c *Config) { c.Table = "public.RISKS" },
		"public.mood": func(c *Config) {
			c.Table, c.Transaction, c.Cursor = "public.odd", "xid", "m"
		},
		"connection string": func(c *Config) { c.Pool, c.URL = nil, "postgres://u:secret%zz@h" },
	} {
		config := sound(db)
		change(&config)
		_, err := source(t, config).Open(t.Context(), "", "")
		isError(t, err, stream.ErrUnusable, part)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
	odd := sound(db)
	odd.Table, odd.Transaction = "public.odd", "xid"
	exec(t, db, "insert into public.odd (id) values ('a')")
	_, err := source(t, odd).Open(t.Context(), "", "")
	isError(t, err, stream.ErrUnusable, "null in some rows")

	exec(t, db, "insert into public.risks (id, txid) values ('x', '99999999999')")
	_, err = source(t, sound(db)).Open(t.Context(), "", "")
	isError(t, err, stream.ErrUnusable, "given out yet")
}

func TestRowLevelSecurityAndRights(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable, insert("a"), `
		do $$ begin create role source_reader login password 'r';
		exception when duplicate_object then null; end $$;
		grant usage on schema public to source_reader`)
	config := sound(db)
	config.Pool = nil
	at := strings.Index(db.URL, "@")
	config.URL = "postgres://source_reader:r" + db.URL[at:]
	reading := source(t, config)
	_, err := reading.Open(t.Context(), "", "")
	isError(t, err, stream.ErrUnusable, "may not read it")

	exec(t, db, "grant select on public.risks to source_reader")
	if _, err := reading.Open(t.Context(), "", ""); err != nil {
		t.Fatal(err)
	}
	check(t, reading, "a")

	exec(t, db, insert("b"))
	exec(t, db, "alter table public.risks enable row level security")
	_, _, err = reading.Read(t.Context(), 1)
	isError(t, err, stream.ErrUnusable, "row-level security")
	_, err = source(t, config).Open(t.Context(), "", "")
	isError(t, err, stream.ErrUnusable, "row-level security")
	exec(t, db, "drop owned by source_reader")
}

// TestHostileNames uses names that would do harm, or nothing, where they weren't quoted.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		`x"; drop table public.victim; --`, `a.b`, `Ünï cødé`, `select`, `t`, `'`, `$1`, `%s`, `\`,
		"new\nline", `"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := database(t, "create table public.victim ()")
			quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
			exec(t, db, `create schema `+quoted+`; create table `+quoted+`.`+quoted+` (
				`+quoted+` bigint primary key, "txid '" xid8 default pg_current_xact_id(),
				id text default 'a', at timestamptz default now());
				insert into `+quoted+`.`+quoted+` values (1), (2), (3)`)
			config := sound(db)
			config.Table = quoted + "." + quoted
			config.Cursor, config.Transaction = name, "txid '"
			s := open(t, config, "", "")
			check(t, s, "a", "a", "a")
			for _, finding := range s.Check(t.Context()) {
				if !finding.Warning {
					t.Error(finding)
				}
			}
			exec(t, db, "select from public.victim")
		})
	}
}

func TestCheckWarns(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable, "create table public.bare (seq bigint, id text, at timestamptz, "+
		"txid xid8)")
	if findings := source(t, sound(db)).Check(t.Context()); len(findings) != 0 {
		t.Errorf("findings of a good table: %v", findings)
	}
	bareWeak, bareSound := weak(db), sound(db)
	bareWeak.Table, bareSound.Table = "public.bare", "bare"
	for _, test := range []struct {
		config Config
		parts  []string
	}{
		{bareWeak, []string{"may lose rows", "may be null", "no index on (seq)", "primary key"}},
		{bareSound, []string{
			"has not the default", "txid of bare may be null", "seq of bare may be null",
			"no index on (txid, seq)", "primary key",
		}},
	} {
		findings := source(t, test.config).Check(t.Context())
		if len(findings) != len(test.parts) {
			t.Errorf("%d findings: %v", len(findings), findings)
			continue
		}
		for i, part := range test.parts {
			if f := findings[i]; !f.Warning || !strings.Contains(f.Error(), part) {
				t.Errorf("finding %v, want one with %q", f, part)
			}
		}
	}
	gone := sound(db)
	gone.Table = "public.gone"
	if findings := source(t, gone).Check(t.Context()); len(findings) != 1 || findings[0].Warning {
		t.Errorf("findings of no table: %v", findings)
	}
}

func TestConfigurationFaults(t *testing.T) {
	t.Parallel()
	db := database(t)
	for part, change := range map[string]func(*Config){
		"out of order":       func(c *Config) { c.Transaction = "" },
		"weak is for":        func(c *Config) { c.Consistency = Weak },
		"want transaction":   func(c *Config) { c.Consistency = "strong" },
		"cursor":             func(c *Config) { c.Cursor = "" },
		"two columns":        func(c *Config) { c.Cursor = c.Transaction },
		"no database":        func(c *Config) { c.Pool = nil },
		"want schema.table":  func(c *Config) { c.Table = "a.b.c" },
		"table \"\"":         func(c *Config) { c.Table = "" },
		"quote isn't closed": func(c *Config) { c.Table = `a."b""` },
		"not valid text":     func(c *Config) { c.Table = "a.\x00" },
		"page":               func(c *Config) { c.Page = -1 },
		"poll":               func(c *Config) { c.Poll = -1 },
		"key":                func(c *Config) { c.Mapping.Key = nil },
	} {
		config := sound(db)
		change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	s := source(t, sound(db))
	if s.Partition().String() != "right/public.risks/0" || s.PollInterval() != PollDefault {
		t.Errorf("%s, %s", s.Partition(), s.PollInterval())
	}
	if _, _, err := s.Read(t.Context(), 1); err == nil || s.Bound(t.Context()) == nil {
		t.Error("a source that isn't open was read")
	}
}
