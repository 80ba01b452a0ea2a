package reconcile

import (
	"testing"

	"github.com/tallystick/tallystick/reconcile/source/file"
	"github.com/tallystick/tallystick/reconcile/source/postgres"
	"github.com/tallystick/tallystick/reconcile/stream"
)

var (
	_ EndingSource    = (*file.Source)(nil)
	_ SelectingSource = (*postgres.Source)(nil)
)

// TestEndOfIsKnownToShards: a shard reads a narrowed source through others, and still learns where
// it stands at its end.
func TestEndOfIsKnownToShards(t *testing.T) {
	t.Parallel()
	narrowed := &between{end: "7"}
	shared := &outlasting{Source: newHub(narrowed).view()}
	if end, fixed := endOf(shared); end != "7" || !fixed {
		t.Errorf("a narrowed source ends at %q, %v", end, fixed)
	}
	plain := &outlasting{Source: newHub(&file.Source{}).view()}
	if end, fixed := endOf(plain); fixed {
		t.Errorf("a file ends at %q for good", end)
	}
	none, err := Between(nil, stream.Range{To: 1}, &stream.CatchUp{})
	if err != nil || len(none) > 0 {
		t.Error(none, err)
	}
}
