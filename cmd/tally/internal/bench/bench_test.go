package bench

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"math"
	"net"
	"os"
	"testing"
)

// frontend gives a message as a client sends it.
func frontend(kind byte, body string) []byte {
	m := []byte{kind}
	m = binary.BigEndian.AppendUint32(m, uint32(len(body)+4))
	return append(m, body...)
}

func TestWireCountsStatementsHoweverTheyAreCut(t *testing.T) {
	t.Parallel()
	start := frontend(0, "user\x00tally\x00")[1:] // the first message has no type
	sent := bytes.Join([][]byte{
		start, frontend('p', "secret"),
		frontend('P', "EEEE"), frontend('B', "QS"), frontend('E', ""), frontend('E', "x"),
		frontend('S', ""), frontend('Q', "begin"), frontend('d', "SSSQQQ"), frontend('c', ""),
	}, nil)
	for size := 1; size <= len(sent); size++ {
		var w wire
		near, far := net.Pipe()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = bytes.NewBuffer(nil).ReadFrom(far)
		}()
		conn := &countedConn{Conn: near, wire: &w}
		for from := 0; from < len(sent); from += size {
			if _, err := conn.Write(sent[from:min(from+size, len(sent))]); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.Close()
		<-drained
		if s, r := w.statements.Load(), w.roundTrips.Load(); s != 3 || r != 2 {
			t.Errorf("in pieces of %d: %d statements and %d round trips, want 3 and 2", size, s, r)
		}
	}
}

// tuple gives a row of a binary COPY.
func tuple(fields ...[]byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(fields)))
	for _, f := range fields {
		if f == nil {
			b = binary.BigEndian.AppendUint32(b, math.MaxUint32)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

func TestSpoolCutsByEpoch(t *testing.T) {
	t.Parallel()
	file, err := os.CreateTemp(t.TempDir(), "spool-")
	if err != nil {
		t.Fatal(err)
	}
	s := &spool{file: file, epochs: map[int64]span{}}
	epoch := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	sent := bytes.Join([][]byte{
		copyHeader, tuple(epoch(1), []byte("a"), nil), tuple(epoch(1), nil, []byte{}),
		tuple(epoch(3), []byte("b"), []byte("c")), copyTrailer,
	}, nil)
	if err := s.fill(bytes.NewReader(sent)); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64][]byte{
		1: bytes.Join([][]byte{
			copyHeader, tuple([]byte("a"), nil), tuple(nil, []byte{}), copyTrailer,
		}, nil),
		2: nil,
		3: bytes.Join([][]byte{copyHeader, tuple([]byte("b"), []byte("c")), copyTrailer}, nil),
	} {
		got, err := s.load(n, make([]byte, 0, 10))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("epoch %d is %q (%v), want %q", n, got, err, want)
		}
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	for cut := len(copyHeader); cut < len(sent)-len(copyTrailer); cut++ {
		in := bufio.NewReader(bytes.NewReader(sent[len(copyHeader):cut]))
		var err error
		for err == nil {
			_, _, err = readTuple(in, nil)
		}
		if want := "cut off: unexpected EOF"; err.Error() != want {
			t.Errorf("cut after %d bytes: %v, want %s", cut, err, want)
		}
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.2: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if !math.IsNaN(quantile(nil, 0.5)) {
		t.Error("a quantile of nothing is a number")
	}
}

func TestRoundKeepsThreeDigits(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]float64{
		123456.7: 123457, 12.345: 12.3, 0.98765: 0.988, 0.0012345: 0.00123, 0: 0,
	} {
		if got := round(v); got != want {
			t.Errorf("%v is rounded to %v, want %v", v, got, want)
		}
	}
}
