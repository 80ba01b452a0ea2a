package store

// Streams gives the COPY streams of an epoch: buffer, match, transition.
func (e *Epoch) Streams() [3][]byte {
	return [3][]byte{e.copies.buffer, e.copies.match, e.copies.transition}
}

// Recycle gives the streams of an epoch back that is not committed.
func (e *Epoch) Recycle() { e.recycle() }
