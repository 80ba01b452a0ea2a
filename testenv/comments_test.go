package testenv

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestEverythingHasAComment: every table, view and column of the schema says what it is.
func TestEverythingHasAComment(t *testing.T) {
	t.Parallel()
	db := DB(t)
	rows, err := db.Pool.Query(t.Context(), `
		select c.relname || coalesce('.' || a.attname, '')
		from pg_class c
		left join lateral (
			select attname, attnum from pg_attribute
			where attrelid = c.oid and attnum > 0 and not attisdropped
			union all select null, 0) a on true
		where c.relnamespace = to_regnamespace($1) and c.relkind in ('r', 'v')
			and c.relname <> 'goose_db_version'
			and case a.attnum when 0 then obj_description(c.oid, 'pg_class')
				else col_description(c.oid, a.attnum) end is null`, db.Schema)
	if err != nil {
		t.Fatal(err)
	}
	silent, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if len(silent) > 0 {
		t.Errorf("no comment on %v", silent)
	}
}
