package file

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRestartsAndBatchSizesChangeNothing reads a random file in random steps, reopening now and
// then at the last position, and wants the records of one reading in one go.
func TestRestartsAndBatchSizesChangeNothing(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, format := range []string{"ndjson", "csv"} {
		path := filepath.Join(t.TempDir(), "a."+format)
		write(t, path, randomFile(random, format))
		once := source(t, config(path))
		once.Seal()
		if _, err := once.Open(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
		want := drain(t, once)
		if len(want) < 100 {
			t.Fatalf("%d records", len(want))
		}
		check(t, readWithRestarts(t, random, path), want...)
	}
}

func readWithRestarts(t *testing.T, random *rand.Rand, path string) []string {
	t.Helper()
	var got []string
	position, identity := "", ""
	for {
		s := open(t, config(path), position, identity)
		s.Seal()
		for range 1 + random.IntN(4) {
			records, atEnd, err := s.Read(t.Context(), 1+random.IntN(20))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				name := r.Event.ID
				if r.Reason != "" {
					name = string(r.Reason)
				}
				got = append(got, name+"@"+r.Position)
				position = r.Position
			}
			identity = s.Identity()
			if atEnd {
				return got
			}
		}
	}
}

func randomFile(random *rand.Rand, format string) string {
	var text strings.Builder
	if format == "csv" {
		text.WriteString("id,k,t,n\r\n")
	}
	for i := range 500 {
		switch random.IntN(8) {
		case 0:
			text.WriteString("\n")
		case 1:
			text.WriteString("a\"broken,line\n")
		case 2:
			text.WriteString(strings.Repeat("long", 200) + "\n")
		case 3:
			text.WriteString("\"stray\n")
		default:
			if format == "csv" {
				fmt.Fprintf(&text, "%d,\"k\n\"\"\",2024-01-01T00:00:00Z,7\r\n", i)
			} else {
				text.WriteString(line(fmt.Sprint(i)) + "\r\n")
			}
		}
	}
	return text.String()
}
