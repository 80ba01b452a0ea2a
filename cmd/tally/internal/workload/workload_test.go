package workload

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

func lines(t *testing.T, c Config, side stream.Side) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := WriteNDJSON(&out, New(c, side)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestASeedDecidesEverything(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Events, c.Deleted, c.Malformed, c.PastHorizon = 5000, 0.01, 0.01, 0.01
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		if !bytes.Equal(lines(t, c, side), lines(t, c, side)) {
			t.Errorf("%s: two runs of one seed differ", side)
		}
		other := c
		other.Seed++
		if bytes.Equal(lines(t, c, side), lines(t, other, side)) {
			t.Errorf("%s: two seeds give the same", side)
		}
	}
}

// figures counts one side's arrivals.
type figures struct {
	first, revised, deleted, repeated, malformed, late, past int
	accounts                                                 map[uint64]int
}

func count(c Config, side stream.Side) figures {
	f := figures{accounts: map[uint64]int{}}
	seen := map[[2]int64]bool{}
	for s := New(c, side); ; {
		e, more := s.Next()
		if !more {
			return f
		}
		identity := [2]int64{e.Number, e.Revision}
		lag := time.Duration(e.Arrival-e.Time) * time.Microsecond
		switch {
		case e.Defect != Sound:
			f.malformed++
		case seen[identity]:
			f.repeated++
		case e.Deleted:
			f.deleted++
		case e.Revision > 1:
			f.revised++
		default:
			f.first++
			f.accounts[e.Account]++
			if lag > LateMax {
				f.past++
			} else if lag > JitterMax {
				f.late++
			}
		}
		seen[identity] = true
	}
}

func TestSharesAreAsAsked(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Events, c.Seed = 200_000, 7
	c.Deleted, c.Malformed, c.PastHorizon = 0.005, 0.001, 0.002
	left, right := count(c, stream.Left), count(c, stream.Right)
	for name, f := range map[string]figures{"left": left, "right": right} {
		of := float64(f.first)
		for what, pair := range map[string][2]float64{
			"events":       {of, 100_000},
			"revised":      {float64(f.revised), c.Revised * of},
			"deleted":      {float64(f.deleted), c.Deleted * of},
			"repeated":     {float64(f.repeated), c.Duplicated * of},
			"malformed":    {float64(f.malformed), c.Malformed * of},
			"late":         {float64(f.late), c.Late * of},
			"past horizon": {float64(f.past), c.PastHorizon * of},
		} {
			got, want := pair[0], pair[1]
			if math.Abs(got-want) > 5*math.Sqrt(want)+0.005*want {
				t.Errorf("%s: %v %s, want about %v", name, got, what, want)
			}
		}
	}
	alone := 0
	for account := range left.accounts {
		if right.accounts[account] == 0 {
			alone++
		}
	}
	if alone < 4000 || alone > 6000 {
		t.Errorf("%d payments without a signal, want about 5000", alone)
	}
	if len(left.accounts) != 100_000 {
		t.Errorf("%d accounts, want one for each of 100000 payments", len(left.accounts))
	}
}

func TestArrivalOrderAndNumbers(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Events = 20_000
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		last, highest := stream.NegInfinity, int64(0)
		for s := New(c, side); ; {
			e, more := s.Next()
			if !more {
				break
			}
			if e.Arrival < last || e.Arrival < e.Time {
				t.Fatalf("%s arrives at %s, after one at %s", e.ID(), e.Arrival, last)
			}
			if e.Number > highest+1 {
				t.Fatalf("%s comes after number %d", e.ID(), highest)
			}
			last, highest = e.Arrival, max(highest, e.Number)
		}
	}
}

func TestLinesAreJSONUnlessMalformed(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Events, c.Malformed, c.Deleted = 5000, 0.02, 0.02
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		attributes := 0
		for s := New(c, side); ; {
			e, more := s.Next()
			if !more {
				break
			}
			line := e.AppendJSON(nil)
			var object map[string]any
			if err := json.Unmarshal(line, &object); (err == nil) != (e.Defect != NotJSON) {
				t.Fatalf("%s: %v", line, err)
			}
			if e.Defect == Sound && e.Number == 1 {
				attributes = len(line)
			}
		}
		if attributes < 180 || attributes > 280 {
			t.Errorf("%s: a line has %d bytes", side, attributes)
		}
	}
}

func BenchmarkWriteNDJSON(b *testing.B) {
	c := Default()
	c.Events = 2 * b.N
	c.Step = stepMin
	b.ReportAllocs()
	if _, err := WriteNDJSON(io.Discard, New(c, stream.Right)); err != nil {
		b.Fatal(err)
	}
}
