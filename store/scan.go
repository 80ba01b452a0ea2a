package store

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// micros scans a timestamptz, infinities included.
type micros stream.Micros

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (m *micros) ScanTimestamptz(v pgtype.Timestamptz) error {
	switch {
	case !v.Valid:
		return fmt.Errorf("read a time: it is null")
	case v.InfinityModifier == pgtype.Infinity:
		*m = micros(stream.Infinity)
	case v.InfinityModifier == pgtype.NegativeInfinity:
		*m = micros(stream.NegInfinity)
	default:
		*m = micros(stream.MicrosOf(v.Time))
	}
	return nil
}

// Values as a binary result holds them.

func readInt4(v []byte) int32 { return int32(binary.BigEndian.Uint32(v)) }

// readInt8 gives 0 for null.
func readInt8(v []byte) int64 {
	if v == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(v))
}

// readTime gives 0 for null.
func readTime(v []byte) stream.Micros {
	if v == nil {
		return 0
	}
	m := stream.Micros(binary.BigEndian.Uint64(v))
	if m.Finite() {
		m += epochOfPostgres
	}
	return m
}

func readBool(v []byte) bool { return v[0] != 0 }

func readSide(v []byte) stream.Side {
	if v[0] == 'l' {
		return stream.Left
	}
	return stream.Right
}

// texts keeps texts together in pieces of memory, each of which stays as long as one of its texts does.
type texts struct {
	piece strings.Builder
	size  int
}

// The first piece is small, since it may be all that is needed; those after it are larger and larger.
const pieceMin, pieceMax = 256, 16 << 10

// keep gives a copy of a text; null is empty.
func (t *texts) keep(v []byte) string {
	if t.piece.Cap()-t.piece.Len() < len(v) {
		t.size = min(max(pieceMin, 2*t.size), pieceMax)
		t.piece.Reset()
		t.piece.Grow(max(t.size, len(v)))
	}
	from := t.piece.Len()
	t.piece.Write(v)
	return t.piece.String()[from:]
}
