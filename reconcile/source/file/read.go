package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// blockBytes is how much is read at once. Records alias the block they were read into, so a block
// is never written twice where a record was cut from it.
const blockBytes = 256 << 10

var byteOrderMark = []byte("\xef\xbb\xbf")

// window is the part of the file that was read and not yet cut into records.
type window struct {
	block []byte
	start int
	// offset is the file offset of the window's first byte.
	offset int64
}

func (w *window) unread() []byte { return w.block[w.start:] }

// end is the file offset just past the window.
func (w *window) end() int64 { return w.offset + int64(len(w.block)-w.start) }

func (w *window) advance(n int) {
	w.start += n
	w.offset += int64(n)
}

// space makes room for more and gives it; what is unread moves to a new block when the old one is
// full.
func (w *window) space() []byte {
	if len(w.block) == cap(w.block) {
		unread := w.unread()
		grown := make([]byte, len(unread), max(blockBytes, 2*len(unread)))
		copy(grown, unread)
		w.block, w.start = grown, 0
	}
	return w.block[len(w.block):cap(w.block)]
}

// discard empties a window from which no record was cut, so that its block can be used again.
func (w *window) discard() {
	w.offset = w.end()
	w.block, w.start = w.block[:0], 0
}

// verdict is what a splitter found at the start of the window.
type verdict uint8

const (
	// incomplete needs more bytes, or a newline that isn't written yet.
	incomplete verdict = iota
	// blank is a line without a record.
	blank
	// found is a record.
	found
)

// splitter cuts one record off data; final says that nothing follows data. It gives how many
// bytes the record takes with its newline.
type splitter func(data []byte, final bool) (record stream.Record, length int, v verdict)

// next cuts the next record off the window; false where more must be read first. With final set
// the window is all there is.
func (s *Source) next(final bool) (stream.Record, bool, error) {
	for {
		if s.skipped != nil {
			return s.skipLine(final)
		}
		data := s.window.unread()
		if s.config.Format == "csv" && s.header == nil {
			if ready, err := s.takeHeader(data, final); !ready || err != nil {
				return stream.Record{}, false, err
			}
			continue
		}
		if len(data) == 0 {
			return stream.Record{}, false, nil
		}
		record, length, v := s.split(data, final)
		switch {
		case v == found:
			s.window.advance(length)
			return s.deliver(record), true, nil
		case v == blank:
			s.window.advance(length)
		case len(data) <= s.mapper.MaxEventBytes()+len("\r\n"):
			return stream.Record{}, false, nil
		default:
			s.skipped = bytes.Clone(data[:s.mapper.MaxEventBytes()])
			s.window.block = append(make([]byte, 0, blockBytes), data...)
			s.window.start = 0
		}
	}
}

// skipLine drops a line over the limit as it comes, so that it's never held whole.
func (s *Source) skipLine(final bool) (stream.Record, bool, error) {
	end := bytes.IndexByte(s.window.unread(), '\n')
	if end < 0 {
		s.window.discard()
		if !final {
			return stream.Record{}, false, nil
		}
	} else {
		s.window.advance(end + 1)
	}
	record := s.mapper.TooLarge(s.skipped)
	s.skipped = nil
	return s.deliver(record), true, nil
}

func (s *Source) deliver(record stream.Record) stream.Record {
	s.delivered = s.window.offset
	record.Position = strconv.FormatInt(s.delivered, 10)
	return record
}

// fill reads more of the file into the window; io.EOF is its present or fixed end.
func (s *Source) fill() error {
	space := s.window.space()
	if s.bounded && !s.gzip {
		space = space[:min(int64(len(space)), max(0, s.bound-s.window.end()))]
		if len(space) == 0 {
			return io.EOF
		}
	}
	n, err := s.content.reader.Read(space)
	if n > 0 {
		return s.filled(space[:n])
	}
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read %s: %w", s.config.Path, err)
	case s.bounded && !s.gzip:
		return s.lost("bytes %d to %d are missing: the file shrank", s.window.end(), s.bound)
	}
	s.idle = true
	if err := s.checkSame(); err != nil {
		return err
	}
	return io.EOF
}

// filled takes bytes that were read at the window's end.
func (s *Source) filled(read []byte) error {
	at := s.window.end()
	s.window.block = s.window.block[:len(s.window.block)+len(read)]
	if s.idle && !s.gzip {
		s.idle = false
		if err := s.checkRewritten(); err != nil {
			return err
		}
	}
	if known := int64(len(s.head)); known < headBytesMax && at+int64(len(read)) > known {
		unknown := read[known-at:]
		s.head = append(s.head, unknown[:min(len(unknown), headBytesMax-len(s.head))]...)
	}
	return nil
}

// splitLine cuts one line of NDJSON.
func (s *Source) splitLine(data []byte, final bool) (stream.Record, int, verdict) {
	end := bytes.IndexByte(data, '\n')
	length := end + 1
	if end < 0 {
		if !final {
			return stream.Record{}, 0, incomplete
		}
		end, length = len(data), len(data)
	}
	line := bytes.TrimSuffix(s.withoutMark(data[:end]), []byte("\r"))
	if len(bytes.TrimLeft(line, " \t")) == 0 {
		return stream.Record{}, length, blank
	}
	return s.mapper.JSON(line), length, found
}

// withoutMark drops a byte order mark at the file's head.
func (s *Source) withoutMark(data []byte) []byte {
	if s.window.offset > 0 {
		return data
	}
	return bytes.TrimPrefix(data, byteOrderMark)
}
