package store

import (
	"encoding/binary"
	"fmt"

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

// texts cuts the texts of one row out of a single allocation; null is empty.
type texts struct{ all string }

func newTexts(buf []byte, values ...[]byte) (texts, []byte) {
	buf = buf[:0]
	for _, v := range values {
		buf = append(buf, v...)
	}
	return texts{string(buf)}, buf
}

func (t *texts) next(v []byte) string {
	s := t.all[:len(v)]
	t.all = t.all[len(v):]
	return s
}
