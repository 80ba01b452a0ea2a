package torture

import (
	"github.com/tallystick/tallystick/store"
)

// notice is one line that a worker writes to the lab, before what it tells of happens where that
// could end it.
type notice struct {
	// Took is the epoch at which the worker found the shard.
	Took *int64 `json:"took,omitempty"`
	// Epoch and From tell where an epoch begins to read each partition.
	Epoch int64    `json:"epoch,omitempty"`
	From  []string `json:"from,omitempty"`
	// Committed is an epoch that is.
	Committed int64 `json:"committed,omitempty"`
	// Restart tells that the worker stops for the next one to begin with a purge.
	Restart bool `json:"restart,omitempty"`
	// Fired is the number of the fault, counted from 1, that strikes at epoch At.
	Fired int   `json:"fired,omitempty"`
	At    int64 `json:"at,omitempty"`
	// Stats are the worker's counts when it leaves the shard.
	Stats *store.Stats `json:"stats,omitempty"`
}
