package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/testenv"
)

// useDatabase lets a generated configuration name the test's database.
func useDatabase(t *testing.T, dir, url string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "tally.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "\ndatabase: %q\n", url)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFromNothingToResults(t *testing.T) {
	t.Parallel()
	db := testenv.EmptyDB(t)
	dir := t.TempDir()
	must := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := execute1(t, args...)
		if code != exitDone {
			t.Fatalf("tally %v exits with %d: %s%s", args, code, stdout, stderr)
		}
		return stdout
	}
	must("generate", "--dir", dir, "--events", "2000", "--malformed", "0.01")
	path := useDatabase(t, dir, db.URL)
	code, stdout, _ := execute1(t, "check", "-c", path)
	if code != exitUsage || !strings.Contains(stdout, "tally migrate") {
		t.Errorf("check before migrate: %d\n%s", code, stdout)
	}
	if code, _, stderr := execute1(t, "run", "-c", path); code != exitUsage {
		t.Errorf("run before migrate: %d %s", code, stderr)
	}
	must("migrate", "-c", path)
	must("check", "-c", path)
	var list []struct{ Applied bool }
	if err := json.Unmarshal([]byte(must("migrate", "status", "-c", path, "--output", "json")),
		&list); err != nil || len(list) == 0 || !list[len(list)-1].Applied {
		t.Errorf("migrate status: %+v, %v", list, err)
	}
	must("run", "-c", path, "--until-end")
	first := must("run", "-c", path, "--until-end", "--seal")
	if !strings.HasPrefix(first, "read 0 records") {
		t.Errorf("a second run reads again: %s", first)
	}
	var open, active, quarantined int64
	sql := `select (select count(*) from tally.results where not is_final),
		(select count(*) from tally.results), (select count(*) from tally.quarantined)`
	if err := db.Pool.QueryRow(t.Context(), sql).Scan(&open, &active, &quarantined); err != nil {
		t.Fatal(err)
	}
	if open != 0 || active < 900 || quarantined == 0 {
		t.Errorf("%d open, %d active results, %d quarantined", open, active, quarantined)
	}
}

func TestGeneratedTablesAreReconciled(t *testing.T) {
	t.Parallel()
	db := testenv.DB(t)
	dir := t.TempDir()
	code, _, stderr := execute1(t, "generate", "--dir", dir, "--events", "1000",
		"--into-postgres", `odd.schema"`, "--database", db.URL)
	if code != exitDone {
		t.Fatal(stderr)
	}
	path := useDatabase(t, dir, db.URL)
	if code, stdout, _ := execute1(t, "check", "-c", path); code != exitDone {
		t.Fatalf("check exits with %d\n%s", code, stdout)
	}
	if code, _, stderr := execute1(t, "run", "-c", path, "--until-end", "--seal"); code != exitDone {
		t.Fatalf("run exits with %d: %s", code, stderr)
	}
	var pairs int64
	row := db.Pool.QueryRow(t.Context(), "select count(*) from tally.results where kind = 'pair'")
	if err := row.Scan(&pairs); err != nil || pairs < 450 {
		t.Errorf("%d pairs, %v", pairs, err)
	}
}

func TestCheckNamesASourceThatIsGone(t *testing.T) {
	t.Parallel()
	db := testenv.DB(t)
	dir := t.TempDir()
	code, _, stderr := execute1(t, "generate", "--dir", dir, "--events", "100")
	if code != exitDone {
		t.Fatal(stderr)
	}
	path := useDatabase(t, dir, db.URL)
	head := []byte(`{"nothing": "known"}` + "\n")
	if err := os.WriteFile(filepath.Join(dir, "payments.ndjson"), head, 0o600); err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := execute1(t, "check", "-c", path, "--output", "json")
	if !strings.Contains(stdout, "would be quarantined, the last as missing_id") {
		t.Errorf("a wrong mapping goes unseen:\n%s", stdout)
	}
}

func TestTheDemoLeavesNothing(t *testing.T) {
	t.Parallel()
	db := testenv.EmptyDB(t)
	code, stdout, stderr := execute1(t, "demo", "--database", db.URL, "--events", "2000")
	if code != exitDone || !strings.Contains(stdout, "matched") {
		t.Fatalf("demo exits with %d: %s%s", code, stdout, stderr)
	}
	var left int64
	row := db.Pool.QueryRow(t.Context(), "select count(*) from pg_namespace where nspname like 'tally%'")
	if err := row.Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
}
