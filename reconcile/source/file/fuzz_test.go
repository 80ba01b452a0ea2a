package file

import (
	"path/filepath"
	"testing"
)

// FuzzCSV holds that no file makes the reader panic or loop, and that every byte belongs to a
// record, the header or a blank line: the positions only grow.
func FuzzCSV(f *testing.F) {
	f.Add([]byte("a,k,2024-01-01T00:00:00Z,1\n\"b\"\"\",\"\n\",\"2\n"))
	f.Add([]byte("\"\r\n\"\"\"\r,\"\",x\"\r"))
	f.Fuzz(func(t *testing.T, rows []byte) {
		path := filepath.Join(t.TempDir(), "a.csv")
		write(t, path, "id,k,t,n\n"+string(rows))
		s := open(t, config(path), "", "")
		s.Seal()
		last := s.window.offset
		for {
			records, atEnd, err := s.Read(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(records) > 0 && s.delivered <= last {
				t.Fatalf("position %d after %d", s.delivered, last)
			}
			last = s.delivered
			if atEnd {
				return
			}
		}
	})
}
