package join_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// BenchmarkLoadRows takes a million rows of half as many keys in, as a start does.
func BenchmarkLoadRows(b *testing.B) {
	const n = 1_000_000
	rows := make([]stream.BufferRow, n)
	for i := range rows {
		at := stream.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, i/2*1000, time.UTC))
		rows[i] = stream.BufferRow{
			Side: stream.Side(i % 2), Horizon: at.Add(time.Hour), Source: "file",
			Event: stream.Event{
				ID: fmt.Sprint("event-", i), Revision: 1, Time: at, HasTime: true,
				Key: fmt.Sprintf("16:acc-%x|3:EUR", uint64(i/2)*0x9e3779b97f4a7c15>>16), Attributes: "{}",
			},
		}
	}
	cfg := join.Config{Rule: join.Rule{Kind: join.LeftJoin, After: time.Minute}}
	for b.Loop() {
		s := join.New(cfg, join.Start{Epoch: 1, Buffered: n, Watermark: stream.NegInfinity})
		for part := range slices.Chunk(rows, 1024) {
			s.LoadRows(part)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}
