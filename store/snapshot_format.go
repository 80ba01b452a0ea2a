package store

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A snapshot is a line of JSON that says what it is of; then tables, each a line of JSON that names
// it and a binary COPY of its rows, whose values are the very bytes that the hashes are over; and
// then a line of JSON that says which epoch all of it is of. A table may come in several parts; of
// a result that is in more than one of them, the last counts. The results of the first part come in
// the order of their primary key.

const (
	snapshotFormat  = "tally snapshot"
	snapshotVersion = 2

	partMatch    = "match"
	partManifest = "epoch"
	partOffset   = "source_offset"
	partBuffer   = "buffer"
)

// valueBytesMax bounds one value of a snapshot: Postgres takes no larger one.
const valueBytesMax = 1 << 30

// ErrSnapshot reports a snapshot that can't be used: it is cut short, of another shard or rule, or
// its rows are not what was written.
var ErrSnapshot = errors.New("the snapshot can't be used")

// SnapshotHead says what a snapshot is of.
type SnapshotHead struct {
	Format         string `json:"format"`
	Version        int    `json:"version"`
	Reconciliation string `json:"reconciliation"`
	RuleVersion    string `json:"rule_version"`
	Generation     int32  `json:"generation"`
	Shard          int32  `json:"shard"`
}

// SnapshotEnd is what the last line of a snapshot says.
type SnapshotEnd struct {
	// Epoch is the one that everything is as of; 0 when the shard has none, and so no snapshot.
	Epoch int64 `json:"epoch"`
	// Rows is how many rows of the buffer are live after it.
	Rows int64 `json:"rows"`
}

// snapshotLine is a line between the tables: the name of the next, or the end.
type snapshotLine struct {
	Table string       `json:"table,omitzero"`
	End   *SnapshotEnd `json:"end,omitzero"`
}

func writeLine(w io.Writer, line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// appendTuple appends a row as COPY has it.
func appendTuple(b []byte, v [][]byte) []byte {
	b = appendColumns(b, int16(len(v)))
	for _, value := range v {
		if value == nil {
			b = appendNull(b)
		} else {
			b = appendBytes(b, value)
		}
	}
	return b
}

// snapshotReader reads a snapshot from its beginning.
type snapshotReader struct {
	r    *bufio.Reader
	head SnapshotHead
	buf  []byte
	ends []int
	row  [][]byte
}

func newSnapshotReader(r io.Reader) (*snapshotReader, error) {
	s := &snapshotReader{r: bufio.NewReaderSize(r, 1<<18)}
	if err := s.line(&s.head); err != nil {
		return nil, err
	}
	if s.head.Format != snapshotFormat || s.head.Version != snapshotVersion {
		return nil, fmt.Errorf("%w: it is %q version %d; want %q version %d", ErrSnapshot,
			s.head.Format, s.head.Version, snapshotFormat, snapshotVersion)
	}
	return s, nil
}

// table gives the name of the next table, and the end after the last.
func (s *snapshotReader) table() (name string, end *SnapshotEnd, err error) {
	var line snapshotLine
	if err := s.line(&line); err != nil || line.End != nil {
		return "", line.End, err
	}
	header := make([]byte, len(copyHeader))
	if _, err := io.ReadFull(s.r, header); err != nil {
		return "", nil, cutShort(err)
	}
	if string(header) != copyHeader {
		return "", nil, fmt.Errorf("%w: table %q has no binary COPY", ErrSnapshot, line.Table)
	}
	return line.Table, nil, nil
}

// next gives the next row of the table, nil after the last. It is good until the call after.
func (s *snapshotReader) next() ([][]byte, error) {
	var count [2]byte
	if _, err := io.ReadFull(s.r, count[:]); err != nil {
		return nil, cutShort(err)
	}
	n := int16(binary.BigEndian.Uint16(count[:]))
	if n < 0 {
		return nil, nil
	}
	s.buf, s.ends = s.buf[:0], s.ends[:0]
	for range n {
		if err := s.value(); err != nil {
			return nil, err
		}
	}
	s.row = s.row[:0]
	begin := 0
	for _, end := range s.ends {
		if end < 0 {
			s.row = append(s.row, nil)
			continue
		}
		s.row = append(s.row, s.buf[begin:end:end])
		begin = end
	}
	return s.row, nil
}

// value appends one value to the row's bytes, and where it ends or -1 for null.
func (s *snapshotReader) value() error {
	var size [4]byte
	if _, err := io.ReadFull(s.r, size[:]); err != nil {
		return cutShort(err)
	}
	n := int32(binary.BigEndian.Uint32(size[:]))
	if n < 0 {
		s.ends = append(s.ends, -1)
		return nil
	}
	if n > valueBytesMax {
		return fmt.Errorf("%w: a value of %d bytes", ErrSnapshot, n)
	}
	begin := len(s.buf)
	s.buf = append(s.buf, make([]byte, n)...)
	if _, err := io.ReadFull(s.r, s.buf[begin:]); err != nil {
		return cutShort(err)
	}
	s.ends = append(s.ends, len(s.buf))
	return nil
}

func (s *snapshotReader) line(into any) error {
	text, err := s.r.ReadSlice('\n')
	if err != nil {
		return cutShort(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: a line that should be JSON: %w", ErrSnapshot, err)
	}
	return nil
}

// drain reads to the end, where whoever unpacks the snapshot says whether it is what was packed.
func (s *snapshotReader) drain() error {
	_, err := io.Copy(io.Discard, s.r)
	return err
}

// cutShort names the end of a snapshot where there should be more.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut short", ErrSnapshot)
	}
	return fmt.Errorf("read the snapshot: %w", err)
}

// copyRows gives the rest of a table as the stream of a COPY.
type copyRows struct {
	snapshot *snapshotReader
	buf      []byte
	begun    bool
	ended    bool
	rows     int64
}

// Read implements io.Reader.
func (c *copyRows) Read(p []byte) (int, error) {
	if len(c.buf) == 0 {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.buf)
	c.buf = c.buf[n:]
	return n, nil
}

func (c *copyRows) fill() error {
	if c.ended {
		return io.EOF
	}
	c.buf = c.buf[:0]
	if !c.begun {
		c.begun = true
		c.buf = append(c.buf, copyHeader...)
	}
	row, err := c.snapshot.next()
	switch {
	case err != nil:
		return err
	case row == nil:
		c.ended = true
		c.buf = append(c.buf, copyTrailer...)
		return nil
	}
	c.rows++
	c.buf = appendTuple(c.buf, row)
	return nil
}
