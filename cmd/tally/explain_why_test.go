package main

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

func at(text string) pgtype.Timestamptz {
	switch text {
	case "infinity":
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	case "-infinity":
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	t, err := time.Parse(time.TimeOnly, text)
	return pgtype.Timestamptz{Time: t.AddDate(2026, 0, 0), Valid: err == nil}
}

func TestStandingSentences(t *testing.T) {
	t.Parallel()
	yes, no, final, shown, bank := true, false, "final", "provisional", "right/bank/0"
	tests := []struct {
		name string
		standing
		says string
	}{
		{"deleted", standing{Deleted: &yes, Live: &yes}, "revision 3 is a deletion"},
		{
			"matched, settled",
			standing{Partners: 2, Settled: at("10:00:00"), Watermark: at("infinity")},
			"matched with 2 partners; that is final, the watermark (infinity) has passed",
		},
		{
			"matched at the bound",
			standing{Partners: 1, Settled: at("10:00:00"), Watermark: at("10:00:00")},
			"matched with 1 partner; that can change until",
		},
		{"final", standing{OnlyStatus: &final}, "is final without a partner"},
		{
			"dropped",
			standing{Deleted: &no, Live: &no, Deadline: at("10:00:00")},
			"left the buffer without a partner",
		},
		{
			"shown",
			standing{
				Live: &yes, OnlyStatus: &shown, KeepsUnmatched: true, HeldBy: &bank,
				Deadline: at("10:00:00"), Watermark: at("09:00:00"),
			},
			"held by right/bank/0) passes 2026-01-01 10:00:00Z (1h of event time to go): then its " +
				"provisional row becomes final.",
		},
		{
			"not shown",
			standing{
				Live: &yes, KeepsUnmatched: true, Policy: "never", Deadline: at("10:00:00"),
				Watermark: at("-infinity"),
			},
			"(-infinity, no source holds it) passes 2026-01-01 10:00:00Z: then it is final; policy " +
				"never has not shown it yet.",
		},
		{"inner join", standing{Live: &yes}, "then it is dropped."},
	}
	for _, test := range tests {
		test.Side, test.ID, test.Revision, test.Key = "left", "L", 3, "k"
		found := strings.Join(test.sentences(), " ")
		if !strings.HasPrefix(found, "Left event L revision 3 ") || !strings.Contains(found, test.says) {
			t.Errorf("%s: found %q, want %q", test.name, found, test.says)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0s": "0s", "30s": "30s", "10m0s": "10m", "10m30s": "10m30s", "2h0m0s": "2h", "2h30m0s": "2h30m",
		"24h": "1d", "120h0m1s": "5d1s", "1us": "1µs", "-1m": "-1m", "20h": "20h", "100m": "1h40m",
	} {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if found := duration(d); found != want {
			t.Errorf("%s: found %s, want %s", text, found, want)
		}
	}
}
