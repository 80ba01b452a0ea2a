package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// splitRow cuts one CSV row. A row whose quoting is wrong, or that runs past the size limit over
// several lines, is its first line alone: a stray quote never swallows the rows after it.
func (s *Source) splitRow(data []byte, final bool) (stream.Record, int, verdict) {
	length, outcome := s.parseRow(data, final)
	tooLong := outcome == rowOpen && len(data) > s.mapper.MaxEventBytes()+len("\r\n")
	switch {
	case outcome == rowBroken, tooLong:
		return s.splitBroken(data, final)
	case outcome == rowOpen:
		return stream.Record{}, 0, incomplete
	}
	raw := bytes.TrimSuffix(bytes.TrimSuffix(data[:length], []byte("\n")), []byte("\r"))
	if len(raw) == 0 {
		return stream.Record{}, length, blank
	}
	return s.mapper.CSV(s.header, s.cells, raw), length, found
}

// splitBroken cuts the first line as a bad row.
func (s *Source) splitBroken(data []byte, final bool) (stream.Record, int, verdict) {
	end := bytes.IndexByte(data, '\n')
	length := end + 1
	if end < 0 {
		if !final {
			return stream.Record{}, 0, incomplete
		}
		end, length = len(data), len(data)
	}
	raw := bytes.TrimSuffix(data[:end:end], []byte("\r"))
	if len(raw) > s.mapper.MaxEventBytes() {
		return s.mapper.TooLarge(raw), length, found
	}
	return stream.Record{Reason: stream.BadRow, Raw: raw}, length, found
}

// takeHeader reads the header off the window's start, once enough of the file is there.
func (s *Source) takeHeader(data []byte, final bool) (bool, error) {
	marked := len(data) - len(s.withoutMark(data))
	length, outcome := s.parseRow(data[marked:], final && len(data) > marked)
	if outcome == rowBroken || len(data) > s.mapper.MaxEventBytes() && outcome == rowOpen {
		return false, s.badHeader(errors.New("the first line is no CSV row"))
	}
	if outcome == rowOpen {
		return false, nil
	}
	names := make([]string, len(s.cells))
	for i, cell := range s.cells {
		names[i] = string(cell)
	}
	header, err := s.mapper.Header(names)
	if err != nil {
		return false, s.badHeader(err)
	}
	s.header = header
	s.window.advance(marked + length)
	return true, nil
}

// readHeader reads the header of a file that is resumed further on.
func (s *Source) readHeader() error {
	for {
		if ready, err := s.takeHeader(s.window.unread(), false); ready || err != nil {
			return err
		}
		switch err := s.fill(); {
		case errors.Is(err, io.EOF):
			return s.lost("the header line is missing")
		case err != nil:
			return err
		}
	}
}

func (s *Source) badHeader(err error) error {
	return fmt.Errorf("%w: header of %s: %w; correct the mapping or the file",
		stream.ErrUnusable, s.config.Path, err)
}

// rowOutcome is what parseRow found.
type rowOutcome uint8

const (
	// rowOpen has no end in the data.
	rowOpen rowOutcome = iota
	rowDone
	// rowBroken has a quote where RFC 4180 has none.
	rowBroken
)

// parseRow fills s.cells with the row at the start of data, and gives its length with its newline.
func (s *Source) parseRow(data []byte, final bool) (length int, outcome rowOutcome) {
	s.cells = s.cells[:0]
	lineEnd := -1
	for at := 0; ; {
		if at < len(data) && data[at] == '"' {
			cell, next, outcome := quotedCell(data, at, final)
			if outcome != rowDone {
				return 0, outcome
			}
			s.cells = append(s.cells, cell)
			at = next
		} else {
			if lineEnd < at {
				if lineEnd = endOfLine(data, at, final); lineEnd < 0 {
					return 0, rowOpen
				}
			}
			cell := data[at:lineEnd]
			if i := bytes.IndexByte(cell, s.config.Delimiter); i >= 0 {
				cell = cell[:i]
			} else {
				cell = bytes.TrimSuffix(cell, []byte("\r"))
			}
			if bytes.IndexByte(cell, '"') >= 0 {
				return 0, rowBroken
			}
			s.cells = append(s.cells, cell)
			at += len(cell)
		}
		length, more, outcome := s.afterCell(data, at, final)
		if !more {
			return length, outcome
		}
		at = length
	}
}

// afterCell looks at what follows a cell: a delimiter (more is true), the row's end, or neither.
func (s *Source) afterCell(data []byte, at int, final bool) (int, bool, rowOutcome) {
	rest := data[at:]
	switch {
	case len(rest) > 0 && rest[0] == s.config.Delimiter:
		return at + 1, true, rowOpen
	case len(rest) > 0 && rest[0] == '\n':
		return at + 1, false, rowDone
	case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
		return at + 2, false, rowDone
	case len(rest) == 0 || len(rest) == 1 && rest[0] == '\r':
		if final {
			return len(data), false, rowDone
		}
		return 0, false, rowOpen
	}
	return 0, false, rowBroken
}

// quotedCell decodes the quoted cell at data[at] and gives where it ends, past its closing quote.
func quotedCell(data []byte, at int, final bool) ([]byte, int, rowOutcome) {
	begin := at + 1
	var decoded []byte
	for from := begin; ; {
		i := bytes.IndexByte(data[from:], '"')
		if i < 0 {
			if final {
				return nil, 0, rowBroken
			}
			return nil, 0, rowOpen
		}
		quote := from + i
		if quote+1 < len(data) && data[quote+1] == '"' {
			decoded = append(decoded, data[from:quote+1]...)
			from = quote + 2
			continue
		}
		if decoded == nil {
			return data[begin:quote:quote], quote + 1, rowDone
		}
		return append(decoded, data[from:quote]...), quote + 1, rowDone
	}
}

func endOfLine(data []byte, at int, final bool) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i
	}
	if final {
		return len(data)
	}
	return -1
}
