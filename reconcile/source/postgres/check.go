package postgres

import (
	"context"
	"fmt"
	"strings"
)

// Finding is one thing that Check has to say.
type Finding struct {
	// Warning is true where the source can be read all the same.
	Warning bool
	// Problem says what is wrong, Fix what to do about it.
	Problem, Fix string
}

// Error makes a finding usable as an error.
func (f Finding) Error() string { return f.Problem + "; " + f.Fix }

// Check tells everything that keeps the table from being read, or from being read well.
func (s *Source) Check(ctx context.Context) []Finding {
	fatal := func(err error) []Finding {
		return []Finding{{Problem: err.Error(), Fix: "correct it and run tally check again"}}
	}
	if err := s.connect(ctx); err != nil {
		return fatal(err)
	}
	found, err := s.inspect(ctx)
	if err != nil {
		return fatal(err)
	}
	if err := s.mustRead(ctx, found); err != nil {
		return fatal(err)
	}
	return append(s.checkOrder(found), s.checkCosts(found)...)
}

// mustRead refuses what would make rows be left out or all be quarantined.
func (s *Source) mustRead(ctx context.Context, t *table) error {
	switch {
	case t.hidesRows:
		return s.hidden()
	case !t.readable:
		return s.unusable("this role may not read it; GRANT SELECT ON %s TO the role", s.quoted)
	}
	for _, path := range s.mapper.Paths() {
		name, _, _ := strings.Cut(path, ".")
		if t.column(path) == nil && t.column(name) == nil {
			return s.unusable("it has no column for %q; check the mapping, case included", path)
		}
	}
	for _, name := range s.orderColumns() {
		if !t.column(name).nullable {
			continue
		}
		null := false
		sql := fmt.Sprintf("select 1 from %s as t where %s is null limit 1",
			s.quoted, "t."+t.column(name).quoted())
		if err := s.query(ctx, sql, nil, func([][]byte) { null = true }); err != nil {
			return err
		}
		if null {
			return s.unusable("column %q is null in some rows, which would never be read; "+
				"fill it and set it NOT NULL", name)
		}
	}
	return nil
}

// checkOrder warns of orders in which rows can be passed unread.
func (s *Source) checkOrder(t *table) []Finding {
	var findings []Finding
	if !s.sound() {
		findings = append(findings, Finding{
			Warning: true,
			Problem: fmt.Sprintf("reading %s by %s alone may lose rows: one that commits after a "+
				"higher %s was read is never seen", s.config.Table, s.config.Cursor, s.config.Cursor),
			Fix: fmt.Sprintf("ALTER TABLE %s ADD COLUMN txid xid8 NOT NULL DEFAULT "+
				"pg_current_xact_id(), and set source.transaction", s.quoted),
		})
	} else if c := t.column(s.config.Transaction); !strings.Contains(
		c.fallback, "pg_current_xact_id()") {
		findings = append(findings, Finding{
			Warning: true,
			Problem: fmt.Sprintf("column %s of %s has not the default pg_current_xact_id(): where "+
				"writers fill it otherwise, rows are lost", c.name, s.config.Table),
			Fix: fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT pg_current_xact_id()",
				s.quoted, c.quoted()),
		})
	}
	for _, name := range s.orderColumns() {
		if c := t.column(name); c.nullable {
			findings = append(findings, Finding{
				Warning: true,
				Problem: fmt.Sprintf("column %s of %s may be null, and such rows are never read",
					name, s.config.Table),
				Fix: fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL",
					s.quoted, c.quoted()),
			})
		}
	}
	return findings
}

// checkCosts warns of pages that cost more than their rows.
func (s *Source) checkCosts(t *table) []Finding {
	var findings []Finding
	columns := s.orderColumns()
	if !t.indexed(columns...) {
		quoted := make([]string, len(columns))
		for i, name := range columns {
			quoted[i] = t.column(name).quoted()
		}
		findings = append(findings, Finding{
			Warning: true,
			Problem: fmt.Sprintf("%s has no index on (%s): every page reads the whole table",
				s.config.Table, strings.Join(columns, ", ")),
			Fix: fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s)",
				s.quoted, strings.Join(quoted, ", ")),
		})
	}
	if t.order[len(t.order)-1] == contentTerm {
		findings = append(findings, Finding{
			Warning: true,
			Problem: fmt.Sprintf("%s has neither a primary key nor a unique %s: rows are told "+
				"apart by a hash of their content, which is slow", s.config.Table, s.config.Cursor),
			Fix: "add a primary key, or a unique index on the cursor",
		})
	}
	return findings
}

// orderColumns lists the configured columns of the order.
func (s *Source) orderColumns() []string {
	if s.sound() {
		return []string{s.config.Transaction, s.config.Cursor}
	}
	return []string{s.config.Cursor}
}
