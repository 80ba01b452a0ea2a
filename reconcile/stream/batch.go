package stream

// Batch is what one epoch reads: a slice of every partition, and the clock it is judged by.
type Batch struct {
	// Clock is the database clock, read once for the epoch.
	Clock Micros
	// Replays is set where the batch is what a discarded epoch read; that epoch left the low
	// watermark at Watermark, however many rows closed, and so must this one.
	Replays   bool
	Watermark Micros
	// Held is set while a candidate catches up: the batch leaves the low watermark where it is.
	Held *CatchUp
	// Release is set once it has caught up and for as long as the low watermark is below that of the
	// CatchUp: the batch has no records, and moves partitions and watermark to where those were.
	Release *CatchUp
	// Parts holds every configured partition once, in Partition.Compare order, whether it gave
	// records or not.
	Parts []Part
}

// Part is one partition's share of a batch.
type Part struct {
	Partition
	Records []Record
	// To is the position just past the last record; empty where nothing was ever read.
	To string
	// Identity is what the source says it is at To.
	Identity string
	// CaughtUp is true when the source had nothing more to give.
	CaughtUp bool
	// Sealed is true when the source is complete and read to its end.
	Sealed bool
}

// Records counts the records of all parts.
func (b *Batch) Records() int {
	n := 0
	for i := range b.Parts {
		n += len(b.Parts[i].Records)
	}
	return n
}
