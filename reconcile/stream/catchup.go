package stream

// CatchUp is where the generation that serves stood when a candidate was begun. The candidate reads
// everything up to there with its watermark held, so that nothing is late; then its partitions and
// its watermark become these, and it goes on as live work does.
type CatchUp struct {
	Watermark Micros
	// Partitions hold the position, in To, and what is known of the partition there.
	Partitions []Progress
}
