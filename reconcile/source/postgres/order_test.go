package postgres

import (
	"cmp"
	"testing"
)

// TestCompareOrdersAsPagesDo reads tables whose cursors no byte order sorts right.
func TestCompareOrdersAsPagesDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ column, values string }{
		"numbers":  {"bigint", "unnest(array[-100, -20, -3, 0, 4, 30, 200])"},
		"decimals": {"numeric", "unnest(array[-10.5, -9, 0.25, 9, 10.125, 100])"},
		"times": {"timestamptz", `'2024-01-01'::timestamptz + interval '90 days 1.5 s' *
			unnest(array[-8000, -5000, -1, 0, 1, 40])`},
		"collation": {`text collate "und-x-icu"`, "unnest(array['a', 'B', 'c', 'D', 'Z', 'ä'])"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := database(t, "create table public.risks (id text default 'x', "+
				"at timestamptz default now(), n "+c.column+" not null)",
				"insert into public.risks (n) select "+c.values)
			config := weak(db)
			config.Cursor = "n"
			s := open(t, config, "", "")
			records, _, err := s.Read(t.Context(), 100)
			if err != nil || len(records) < 6 {
				t.Fatalf("%d records, %v", len(records), err)
			}
			positions := []string{""}
			for _, r := range records {
				positions = append(positions, r.Position)
			}
			for i, a := range positions {
				for j, b := range positions {
					got, err := s.Compare(t.Context(), a, b)
					if err != nil || got != cmp.Compare(i, j) {
						t.Errorf("compare %q and %q: %d, %v, want %d", a, b, got, err, cmp.Compare(i, j))
					}
				}
			}
		})
	}
}
