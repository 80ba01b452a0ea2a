// Package file reads one NDJSON or CSV file in order after a position, as it grows or up to a
// fixed end. The position of a record is the byte offset just past its newline, in decimal;
// blank lines have no record of their own and go with the next one.
//
// What a file holds is never guessed: a line that is no record is delivered with the reason, and
// a half line at the end waits for its newline. A byte order mark at the head is skipped, and a
// carriage return before a newline belongs to the newline. A gzip file (.gz) is read up to a
// fixed end only; its positions count decompressed bytes.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tallystick/tallystick/reconcile/source/record"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// PollDefault is how long to wait for new data where Config says nothing.
const PollDefault = 20 * time.Millisecond

// Config says what to read and how.
type Config struct {
	Side stream.Side
	// Name names the source; the default is the base name of the path.
	Name string
	Path string
	// Format is ndjson or csv; the default is told by the path's ending, .gz looked through.
	Format  string
	Mapping record.Mapping
	// Delimiter separates CSV cells; 0 means a comma.
	Delimiter byte
	// Poll is what PollInterval gives; 0 means PollDefault.
	Poll time.Duration
}

// Source reads one file. It serves one goroutine at a time. After an error from Read it must be
// opened again.
type Source struct {
	config Config
	mapper *record.Mapper
	split  splitter
	gzip   bool

	// content is nil until the file is there.
	content *content
	window  window
	// head is the file's beginning as far as it's known, up to headBytesMax.
	head []byte
	// delivered is the position of the last record delivered, or where reading began.
	delivered int64
	// skipped is the beginning of a line over the limit that is being skipped, else nil.
	skipped []byte
	header  *record.Header
	cells   [][]byte
	// idle is true after the present end was met, until more was read.
	idle bool

	bounded bool
	// bound is the fixed end in bytes of the file as stored; it counts only when bounded.
	bound  int64
	sealed bool
}

// New checks the configuration. It doesn't touch the file.
func New(config Config) (*Source, error) {
	if config.Path == "" {
		return nil, errors.New("file source: path is empty")
	}
	if config.Name == "" {
		config.Name = filepath.Base(config.Path)
	}
	if config.Poll < 0 {
		return nil, fmt.Errorf("file source %s: poll %s is negative", config.Name, config.Poll)
	}
	if config.Poll == 0 {
		config.Poll = PollDefault
	}
	if config.Delimiter == 0 {
		config.Delimiter = ','
	}
	if strings.IndexByte("\"\r\n\x00", config.Delimiter) >= 0 || config.Delimiter >= 0x80 {
		return nil, fmt.Errorf("file source %s: delimiter %q can't separate cells",
			config.Name, config.Delimiter)
	}
	s := &Source{config: config, gzip: strings.HasSuffix(config.Path, ".gz")}
	if err := s.chooseFormat(); err != nil {
		return nil, err
	}
	mapper, err := record.New(config.Mapping)
	if err != nil {
		return nil, fmt.Errorf("file source %s: %w", config.Name, err)
	}
	s.mapper = mapper
	return s, nil
}

// Partition gives the file's only partition, number 0.
func (s *Source) Partition() stream.Partition {
	return stream.Partition{Side: s.config.Side, Source: s.config.Name}
}

// PollInterval tells how long to wait after the present end before the next Read.
func (s *Source) PollInterval() time.Duration { return s.config.Poll }

// Bound fixes the end at the file's present size: once it's reached, Read gives nothing more.
// A file that isn't there is stream.ErrUnusable.
func (s *Source) Bound(context.Context) error {
	info, err := os.Stat(s.config.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return s.missing(err)
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", s.config.Path, err)
	}
	if !s.bounded {
		s.bounded, s.bound = true, info.Size()
	}
	return nil
}

// EndAt fixes the end at a position that was read before. A last line that had no newline then, since
// the file was sealed, is a record again.
func (s *Source) EndAt(position string) error {
	end, err := parsePosition(position)
	if err != nil {
		return fmt.Errorf("read %s up to a position: %w", s.config.Path, err)
	}
	s.bounded, s.bound, s.sealed = true, end, true
	return nil
}

// Seal says that the file is complete, so that a last line without its newline is a record too;
// its position is the file's size.
func (s *Source) Seal() { s.sealed = true }

// Identity tells what the file is at the position of the last record: a hash of its head. Empty
// while nothing was read.
func (s *Source) Identity() string { return identityOf(s.head, s.delivered) }

// Close closes the file. The source can be opened again.
func (s *Source) Close() error {
	if s.content == nil {
		return nil
	}
	err := s.content.close()
	s.content = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", s.config.Path, err)
	}
	return nil
}

// Read gives up to maxRecords records that are there now, without waiting for more; atEnd is true
// when the present or fixed end was reached. A file that was replaced or cut while it was read is
// stream.ErrPositionLost.
func (s *Source) Read(
	ctx context.Context, maxRecords int,
) (records []stream.Record, atEnd bool, err error) {
	if s.content == nil {
		if appeared, err := s.appear(); !appeared {
			return nil, true, err
		}
	}
	if s.gzip && !s.bounded {
		return nil, false, fmt.Errorf("%w: %s is compressed and can't be followed as it grows; "+
			"read it with --until-end, or decompress it", stream.ErrUnusable, s.config.Path)
	}
	for len(records) < maxRecords {
		next, found, err := s.next(false)
		if err != nil {
			return nil, false, err
		}
		if found {
			if records == nil {
				records = make([]stream.Record, 0, s.expect(maxRecords))
			}
			records = append(records, next)
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		switch err := s.fill(); {
		case errors.Is(err, io.EOF):
			return s.finish(records, maxRecords)
		case err != nil:
			return nil, false, err
		}
	}
	return records, false, nil
}

// finish ends a Read at the present end, where a sealed file still may hold a last line.
func (s *Source) finish(
	records []stream.Record, maxRecords int,
) (all []stream.Record, atEnd bool, err error) {
	if s.sealed && !s.bounded {
		s.bounded, s.bound = true, s.window.end()
	}
	for s.sealed {
		if len(records) == maxRecords {
			return records, false, nil
		}
		last, found, err := s.next(true)
		if err != nil {
			return nil, false, err
		}
		if !found {
			break
		}
		records = append(records, last)
	}
	return records, true, nil
}

// expect guesses how many records a Read will give, from what is in the window.
func (s *Source) expect(maxRecords int) int {
	const recordBytesTypical = 128
	return min(maxRecords, 1+len(s.window.unread())/recordBytesTypical)
}

// appear opens a file that wasn't there when the source was opened.
func (s *Source) appear() (bool, error) {
	if _, err := os.Stat(s.config.Path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := s.start(0); err != nil {
		return false, err
	}
	return true, nil
}

func (s *Source) missing(err error) error {
	return fmt.Errorf("%w: %w: check source.path", stream.ErrUnusable, err)
}

func (s *Source) chooseFormat() error {
	format := s.config.Format
	if format == "" {
		ending := filepath.Ext(strings.TrimSuffix(s.config.Path, ".gz"))
		format = strings.ToLower(strings.TrimPrefix(ending, "."))
		if format == "jsonl" {
			format = "ndjson"
		}
	}
	switch format {
	case "ndjson":
		s.split = s.splitLine
	case "csv":
		s.split = s.splitRow
	default:
		return fmt.Errorf("file source %s: can't tell the format of %s: "+
			"set source.format to ndjson or csv", s.config.Name, s.config.Path)
	}
	s.config.Format = format
	return nil
}
