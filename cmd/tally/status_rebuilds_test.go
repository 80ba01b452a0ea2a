package main

import (
	"strings"
	"testing"
)

// besidePay adds to pay a candidate that is being built, one that was accepted, and an interval that
// was merged with epoch 3 and settled correction 0-3-2.
const besidePay = `
insert into tally.generation (generation_id, reconciliation, rule_version, rule, shards, kind, status,
    base, interval_from, interval_to, catch_up, promoted_epoch)
overriding system value
select id, 'pay', version, rule, shards, x.kind, x.status, 2, since, since + interval '1 hour',
    '{"watermark": "2026-01-10T11:00:00Z", "partitions": []}', promoted
from tally.generation, (values
    (7, 'v3', 'full', 'candidate', null, null),
    (8, 'v2', 'interval', 'candidate', '2026-01-09 10:00Z'::timestamptz, null),
    (9, 'v2', 'interval', 'merged', '2026-01-09 10:00Z', 3)
) as x (id, version, kind, status, since, promoted)
where generation_id = 2;
insert into tally.shard (generation_id, shard, watermark)
values (7, 0, '-infinity'), (8, 0, '2026-01-10 11:00Z');
insert into tally.validation (generation_id, number, base, scope, passed, only_base, only_candidate,
    in_both, explained, unexplained, totals, differences, accepted_by, accepted_why)
values (8, 1, 2, 'all', false, 1, 0, 5, 0, 1, '[]', '[]', 'ann', 'known');
update tally.correction set resolved_by = 9 where status = 'resolved';
update tally.match_transition set reason = 'rebuild'
where generation_id = 2 and shard = 0 and epoch = 3 and to_status = 'retracted';`

func TestRebuildsForPeople(t *testing.T) {
	t.Parallel()
	config := fixture(t, "pay", besidePay)
	try := func(args []string, wants ...string) {
		t.Helper()
		found := tally(t, config, args...)
		for _, want := range wants {
			if !strings.Contains(found, want) {
				t.Errorf("tally %v: no %q in\n%s", args, want, found)
			}
		}
	}
	try([]string{"status"},
		"\ncandidate 7 beside generation 2: full, rule v3: being built, its watermark is held at -infinity; "+
			"not validated\n",
		"\ncandidate 8 beside generation 2: interval 2026-01-09 10:00:00Z to 2026-01-09 11:00:00Z, rule v2: "+
			"built, watermark 2026-01-10 11:00:00Z; differences accepted by ann\n",
		"\n2 corrections open: tally rebuild --auto settles all, with --corrections those that live work "+
			"is past\n")
	try([]string{"explain", "L6"}, "rebuild (generation 9)\n")
	try([]string{"explain", "L6", "--output", "json"}, `"reason": "rebuild", "rebuilt_by": 9,`)
	try([]string{"explain", "R30"}, "Revision 1 of right event R30 came too late (past_horizon) for "+
		"generation 2 and was set aside as correction 0-3-2; generation 9 settled it in epoch 3.\n")
}
