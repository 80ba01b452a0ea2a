package torture

import (
	"math/rand/v2"
	"slices"
)

const (
	// faultsPerSeed at most are planned for one seed, one every few epochs.
	faultsPerSeed  = 7
	faultsApart    = 4
	firstFault     = 2
	spareEpochs    = 6 // after the last fault
	epochsPlanned  = firstFault + faultsPerSeed*faultsApart + spareEpochs
	cellStride     = 29 // a prime: seeds that follow each other mix steps and modes
	streamPlan     = 1  // the random numbers of a seed are drawn from one stream a purpose
	streamSetup    = 2
	streamWorkload = 3
	streamDamage   = 4
)

// plan gives the faults of a seed, in the order of epochs. Seeds in a row deal out the cells like
// cards: all are dealt before the first comes again, each time with other epochs and neighbours.
func plan(seed uint64, filter Filter) []Fault {
	rng := rand.New(rand.NewPCG(seed, streamPlan))
	cells := filter.cells()
	n := min(faultsPerSeed, len(cells))
	faults := make([]Fault, n)
	for i := range faults {
		dealt := (seed-1)*uint64(n) + uint64(i)
		faults[i] = cells[dealt*stride(len(cells))%uint64(len(cells))]
		faults[i].Second = dealt/uint64(len(cells))%2 == 1
	}
	rng.Shuffle(n, func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for i := range faults {
		faults[i].Epoch = int64(firstFault + i*faultsApart + rng.IntN(faultsApart))
	}
	return slices.Clip(faults)
}

// stride is a step through so many cells that reaches all of them.
func stride(cells int) uint64 {
	if cells%cellStride == 0 {
		return 1
	}
	return cellStride
}
