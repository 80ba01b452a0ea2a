package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// An object is Zstandard frames, which any tool unpacks, and behind them a frame that tools skip:
// it holds the SHA-256 of all bytes before it.

// checksum is the SHA-256 of an object up to the last frame.
type checksum [sha256.Size]byte

// lastFrame is the head of the last frame: the number of a skippable one, then its size.
var lastFrame = binary.LittleEndian.AppendUint32(
	binary.LittleEndian.AppendUint32(nil, 0x184D2A50), sha256.Size)

const lastFrameBytes = 8 + sha256.Size

// packer compresses and sums what is written. It uses the fastest level and no goroutines: the rest
// of the machine has other work.
type packer struct {
	w     io.Writer
	sum   hash.Hash
	zip   *zstd.Encoder
	bytes int64
}

func newPacker(w io.Writer) (*packer, error) {
	p := &packer{w: w, sum: sha256.New()}
	zip, err := zstd.NewWriter(counting{p},
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("start compressing: %w", err)
	}
	p.zip = zip
	return p, nil
}

// counting writes what was compressed.
type counting struct{ *packer }

func (c counting) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.sum.Write(b[:n])
	c.bytes += int64(n)
	return n, err
}

// Write implements io.Writer.
func (p *packer) Write(b []byte) (int, error) { return p.zip.Write(b) }

// close writes the last frame; it doesn't close what is written to.
func (p *packer) close() (sum checksum, err error) {
	if err := p.zip.Close(); err != nil {
		return sum, err
	}
	p.sum.Sum(sum[:0])
	n, err := p.w.Write(append(bytes.Clone(lastFrame), sum[:]...))
	p.bytes += int64(n)
	return sum, err
}

// summed reads an object up to the last frame and sums it.
type summed struct {
	file io.Reader
	left int64
	sum  hash.Hash
	err  error
}

func newSummed(file io.Reader, size int64) (*summed, error) {
	if size < lastFrameBytes {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrDamaged, size)
	}
	return &summed{file: file, left: size - lastFrameBytes, sum: sha256.New()}, nil
}

// Read implements io.Reader.
func (s *summed) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.file.Read(b[:min(int64(len(b)), s.left)])
	s.sum.Write(b[:n])
	s.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if s.left > 0 && n == 0 {
			err = fmt.Errorf("%w: it is cut short", ErrDamaged)
		}
	}
	if err != nil {
		s.err = err
	}
	return n, err
}

// check reads what is left and compares the sum with the one in the last frame.
func (s *summed) check() (sum checksum, err error) {
	if _, err := io.Copy(io.Discard, s); err != nil {
		return sum, err
	}
	last := make([]byte, lastFrameBytes)
	switch _, err := io.ReadFull(s.file, last); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return sum, fmt.Errorf("%w: it is cut short", ErrDamaged)
	case err != nil:
		return sum, err
	}
	s.sum.Sum(sum[:0])
	if !bytes.Equal(last[:len(lastFrame)], lastFrame) || !bytes.Equal(last[len(lastFrame):], sum[:]) {
		return sum, fmt.Errorf("%w: its SHA-256 is not the one written behind it", ErrDamaged)
	}
	return sum, nil
}

// sumOf reads an object and gives its sum, which is the one in its last frame.
func sumOf(file io.Reader, size int64) (checksum, error) {
	s, err := newSummed(file, size)
	if err != nil {
		return checksum{}, err
	}
	return s.check()
}

// unpacker decompresses an object, and ends well only if it is what was written.
type unpacker struct {
	file io.ReadCloser
	raw  *summed
	zip  *zstd.Decoder
}

func newUnpacker(file io.ReadCloser, size int64) (*unpacker, error) {
	raw, err := newSummed(file, size)
	if err != nil {
		return nil, err
	}
	zip, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("start decompressing: %w", err)
	}
	return &unpacker{file, raw, zip}, nil
}

// Read implements io.Reader.
func (u *unpacker) Read(b []byte) (int, error) {
	n, err := u.zip.Read(b)
	switch {
	case err == nil:
		return n, nil
	case u.raw.err != nil:
		return n, u.raw.err
	case !errors.Is(err, io.EOF):
		return n, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if _, err := u.raw.check(); err != nil {
		return n, err
	}
	return n, io.EOF
}

// Close implements io.Closer.
func (u *unpacker) Close() error {
	u.zip.Close()
	return u.file.Close()
}
