package store

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Values in Postgres' binary form, as COPY, array elements and parameters hold them: the length in
// four bytes, -1 for null, then the value. They are appended to one growing slice, because an epoch
// has hundreds of thousands of them and an allocation for each would cost more than the rest.

// epochOfPostgres is 2000-01-01 in microseconds since 1970.
const epochOfPostgres = 946_684_800_000_000

func appendNull(b []byte) []byte { return append(b, 0xff, 0xff, 0xff, 0xff) }

func appendText[T ~string](b []byte, v T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}

// appendTextOrNull writes null for the empty text.
func appendTextOrNull[T ~string](b []byte, v T) []byte {
	if v == "" {
		return appendNull(b)
	}
	return appendText(b, v)
}

func appendBytes(b, v []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}

func appendInt4(b []byte, v int32) []byte {
	return append(b, 0, 0, 0, 4, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func appendInt8(b []byte, v int64) []byte {
	b = append(b, 0, 0, 0, 8)
	return binary.BigEndian.AppendUint64(b, uint64(v))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0, 0, 0, 1, 1)
	}
	return append(b, 0, 0, 0, 1, 0)
}

func appendTime(b []byte, v stream.Micros) []byte {
	if v.Finite() {
		v -= epochOfPostgres
	}
	return appendInt8(b, int64(v)) // the infinities are the same numbers on both sides
}

// appendJSONBOrNull writes JSON text as jsonb, null for the empty text.
func appendJSONBOrNull(b []byte, v string) []byte {
	if v == "" {
		return appendNull(b)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)+1))
	b = append(b, 1) // version of the format
	return append(b, v...)
}

// The frame of a binary COPY.
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
)

func appendColumns(b []byte, count int16) []byte {
	return binary.BigEndian.AppendUint16(b, uint16(count))
}

// args are the parameters of one statement.
type args struct {
	values [][]byte
	oids   []uint32
}

func (a *args) add(oid uint32, value []byte) {
	a.values = append(a.values, value)
	a.oids = append(a.oids, oid)
}

func (a *args) int4(v int32) { a.add(pgtype.Int4OID, appendInt4(nil, v)[4:]) }

func (a *args) int8(v int64) { a.add(pgtype.Int8OID, appendInt8(nil, v)[4:]) }

func (a *args) bool(v bool) { a.add(pgtype.BoolOID, appendBool(nil, v)[4:]) }

func (a *args) text(v string) { a.add(pgtype.TextOID, []byte(v)) }

func (a *args) time(v stream.Micros) { a.add(pgtype.TimestamptzOID, appendTime(nil, v)[4:]) }

func (a *args) uuid(v [16]byte) { a.add(pgtype.UUIDOID, v[:]) }

func (a *args) bytea(v []byte) { a.add(pgtype.ByteaOID, v) }

func (a *args) jsonb(v string) { a.add(pgtype.JSONBOID, appendJSONBOrNull(nil, v)[4:]) }

// array adds an array of one column of the items; put appends an item's value.
func array[T any](a *args, kind arrayKind, items []T, put func([]byte, *T) []byte) {
	const header, element = 20, 16
	b := make([]byte, 0, header+element*len(items))
	if len(items) == 0 {
		b = binary.BigEndian.AppendUint64(b, 0) // no dimension
		a.add(kind.array, binary.BigEndian.AppendUint32(b, kind.element))
		return
	}
	b = binary.BigEndian.AppendUint32(b, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 1) // may hold nulls
	b = binary.BigEndian.AppendUint32(b, kind.element)
	b = binary.BigEndian.AppendUint32(b, uint32(len(items)))
	b = binary.BigEndian.AppendUint32(b, 1) // lower bound
	for i := range items {
		b = put(b, &items[i])
	}
	a.add(kind.array, b)
}

// arrayKind is the type of an array and of its elements.
type arrayKind struct{ array, element uint32 }

var (
	textArray  = arrayKind{pgtype.TextArrayOID, pgtype.TextOID}
	int4Array  = arrayKind{pgtype.Int4ArrayOID, pgtype.Int4OID}
	int8Array  = arrayKind{pgtype.Int8ArrayOID, pgtype.Int8OID}
	timeArray  = arrayKind{pgtype.TimestamptzArrayOID, pgtype.TimestamptzOID}
	boolArray  = arrayKind{pgtype.BoolArrayOID, pgtype.BoolOID}
	byteaArray = arrayKind{pgtype.ByteaArrayOID, pgtype.ByteaOID}
)
