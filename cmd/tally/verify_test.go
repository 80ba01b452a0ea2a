package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestVerifyAndRestore damages rows, sees them named, goes back, and ends with the same results.
func TestVerifyAndRestore(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf("%s\nepoch: {max_events: 40}\n", generated(t, 300)))
	if code, _, stderr := p.execute(t, "verify"); code != exitFailed ||
		!strings.Contains(stderr, "has not run") {
		t.Errorf("before the first run: exit %d, %s", code, stderr)
	}
	p.tally(t, "run", "--until-end", "--seal")
	want, epochs := p.digest(t), p.epochs(t)
	for _, args := range [][]string{{"verify"}, {"verify", "--deep"}} {
		if found := p.tally(t, args...); !strings.Contains(found, "nothing is damaged") {
			t.Errorf("%v:\n%s", args, found)
		}
	}
	p.exec(t, `update tally.match set key = key || 'x' where changed_epoch = $1`, epochs)
	code, found, stderr := p.execute(t, "verify")
	if code != exitIntegrity || !strings.Contains(found, "its row_hash is not that of its columns") ||
		!strings.Contains(stderr, "tally restore --to-epoch N") {
		t.Errorf("damaged: exit %d\n%s%s", code, found, stderr)
	}
	var rows []map[string]any
	code, found, _ = p.execute(t, "verify", "--output", "json")
	if err := json.Unmarshal([]byte(found), &rows); err != nil || code != exitIntegrity ||
		rows[len(rows)-1]["table"] != "match" {
		t.Errorf("damaged, as JSON: exit %d, %v\n%s", code, err, found)
	}
	p.tally(t, "restore", "--to-epoch", "3")
	p.tally(t, "verify", "--deep")
	p.expect(t, "the epoch", "select parent_epoch::text from tally.epochs where kind = 'restore'", "3")
	p.tally(t, "run", "--until-end", "--seal")
	p.tally(t, "verify", "--deep")
	if p.digest(t) != want {
		t.Error("the results are others than before")
	}
	p.expect(t, "replays that gave something else",
		"select epoch::text from tally.epochs where replay_divergence is not null")
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf("%s\nepoch: {max_events: 40}\nretain: {epochs: 3}\n",
		generated(t, 300)))
	p.tally(t, "run", "--until-end", "--seal")
	newest := p.epochs(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"restore"}, "say the epoch to go back to"},
		{[]string{"restore", "--to-epoch", "3", "--shard", "1"}, "there are shards 0 to 0"},
		{
			[]string{"restore", "--to-epoch", "1"},
			fmt.Sprintf("the oldest that can be restored is %d, the newest %d", newest-2, newest),
		},
		{[]string{"restore", "--to-epoch", fmt.Sprint(newest + 1)}, "can't go back to that epoch"},
	} {
		code, _, stderr := p.execute(t, c.args...)
		if code != exitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit %d, %s, want %q", c.args, code, stderr, c.says)
		}
	}
}
