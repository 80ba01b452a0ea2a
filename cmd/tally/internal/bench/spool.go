package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5"
)

// The frame of a binary COPY: signature, flags and the length of an empty extension in front, a
// field count of -1 at the end.
var (
	copyHeader  = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	copyTrailer = []byte{0xff, 0xff}
)

// spool is a file of rows in the form in which COPY takes them, cut by epochs.
type spool struct {
	file *os.File
	// epochs gives where the rows of an epoch are.
	epochs map[int64]span
}

type span struct{ from, to int64 }

// newSpool runs a COPY to stdout whose first column is the epoch and whose rows are in its order.
// The epoch is cut off. The file is removed by close.
func newSpool(ctx context.Context, conn *pgx.Conn, dir, sql string) (*spool, error) {
	file, err := os.CreateTemp(dir, "spool-")
	if err != nil {
		return nil, fmt.Errorf("make a file for rows: %w", err)
	}
	s := &spool{file: file, epochs: map[int64]span{}}
	pipe, into := io.Pipe()
	copied := make(chan error, 1)
	go func() {
		_, err := conn.PgConn().CopyTo(ctx, into, sql)
		copied <- errors.Join(err, into.CloseWithError(err))
	}()
	err = s.fill(pipe)
	err = errors.Join(err, pipe.CloseWithError(err), <-copied)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", errors.Join(err, s.close()))
	}
	return s, nil
}

// fill splits a COPY by its first column.
func (s *spool) fill(from io.Reader) error {
	in, out := bufio.NewReaderSize(from, 1<<20), bufio.NewWriterSize(s.file, 1<<20)
	header := make([]byte, len(copyHeader))
	if _, err := io.ReadFull(in, header); err != nil || !bytes.Equal(header, copyHeader) {
		return errors.Join(errors.New("not a binary COPY"), err)
	}
	var row []byte
	at := int64(0)
	for {
		epoch, tuple, err := readTuple(in, row[:0])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		row = tuple
		if _, err := out.Write(row); err != nil {
			return err
		}
		part, known := s.epochs[epoch]
		if !known {
			part.from = at
		}
		at += int64(len(row))
		part.to = at
		s.epochs[epoch] = part
	}
	// What comes behind the trailer has to be read as well, or the sender never ends.
	_, err := io.Copy(io.Discard, in)
	return errors.Join(err, out.Flush())
}

// readTuple reads one row and cuts the epoch off; io.EOF at the trailer.
func readTuple(in *bufio.Reader, row []byte) (epoch int64, tuple []byte, err error) {
	var head [2 + 4 + 8]byte
	if _, err := io.ReadFull(in, head[:2]); err != nil {
		return 0, nil, fmt.Errorf("cut off: %w", noEOF(err))
	}
	if bytes.Equal(head[:2], copyTrailer) {
		return 0, nil, io.EOF
	}
	if _, err := io.ReadFull(in, head[2:]); err != nil {
		return 0, nil, fmt.Errorf("cut off: %w", noEOF(err))
	}
	columns := binary.BigEndian.Uint16(head[:]) - 1
	epoch = int64(binary.BigEndian.Uint64(head[6:]))
	row = binary.BigEndian.AppendUint16(row, columns)
	for range columns {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return 0, nil, fmt.Errorf("cut off: %w", noEOF(err))
		}
		row = append(row, size[:]...)
		n := max(0, int(int32(binary.BigEndian.Uint32(size[:]))))
		from := len(row)
		row = append(row, make([]byte, n)...)
		if _, err := io.ReadFull(in, row[from:]); err != nil {
			return 0, nil, fmt.Errorf("cut off: %w", noEOF(err))
		}
	}
	return epoch, row, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// load gives an epoch's rows as one COPY stream, in b where it is large enough; nil without rows.
func (s *spool) load(epoch int64, b []byte) ([]byte, error) {
	part, known := s.epochs[epoch]
	if !known {
		return nil, nil
	}
	b = append(b[:0], copyHeader...)
	from := len(b)
	b = append(b, make([]byte, part.to-part.from)...)
	if _, err := s.file.ReadAt(b[from:], part.from); err != nil {
		return nil, fmt.Errorf("read rows of epoch %d: %w", epoch, err)
	}
	return append(b, copyTrailer...), nil
}

// close removes the file.
func (s *spool) close() error {
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
