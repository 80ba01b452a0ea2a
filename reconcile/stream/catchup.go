package stream

// CatchUp is where the generation that serves stood when a candidate was begun. The candidate reads
// everything up to there with its watermark held, so that nothing is late; then its partitions and
// its watermark become these, and it goes on as live work does.
type CatchUp struct {
	Watermark Micros
	// Partitions hold the position, in To, and what is known of the partition there.
	Partitions []Progress
}

// Of gives what is known of a partition, nil where the generation that serves had none such.
func (c *CatchUp) Of(p Partition) *Progress {
	if c == nil {
		return nil
	}
	for i := range c.Partitions {
		if c.Partitions[i].Partition == p {
			return &c.Partitions[i]
		}
	}
	return nil
}
