package reconcile

import (
	"runtime/debug"
	"sync"
)

// loading counts the shards whose state is being loaded, and keeps the setting of the garbage
// collector for when none is.
var loading struct {
	sync.Mutex
	shards, percent int
}

// pauseCollector holds the garbage collector until the function that it returns is called. What is
// allocated while a state is loaded stays, and the collector would go over it again each time that
// the heap has doubled, which takes a third of the time. A limit on memory (GOMEMLIMIT) still counts.
func pauseCollector() (resume func()) {
	loading.Lock()
	defer loading.Unlock()
	if loading.shards == 0 {
		loading.percent = debug.SetGCPercent(-1)
	}
	loading.shards++
	return func() {
		loading.Lock()
		defer loading.Unlock()
		loading.shards--
		if loading.shards == 0 {
			debug.SetGCPercent(loading.percent)
		}
	}
}
