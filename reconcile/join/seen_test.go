package join

import (
	"strconv"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestSeenForgetsNothing: an id that was added is always known, on its own side.
func TestSeenForgetsNothing(t *testing.T) {
	t.Parallel()
	const ids = 200_000
	seen := NewSeen()
	for i := range ids {
		seen.Add(stream.Side(i%2), "id-"+strconv.Itoa(i))
	}
	seen.Add(stream.Left, "")
	if !seen.mayHold(stream.Left, "") {
		t.Error("the empty id is forgotten")
	}
	wrong := 0
	for i := range ids {
		id := "id-" + strconv.Itoa(i)
		if !seen.mayHold(stream.Side(i%2), id) {
			t.Fatalf("%s is forgotten", id)
		}
		if seen.mayHold(stream.Side(1-i%2), id) {
			wrong++
		}
	}
	if wrong > ids/50 {
		t.Errorf("%d of %d ids are taken for known on the other side, more than 1 in 50", wrong, ids)
	}
}
