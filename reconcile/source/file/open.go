package file

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// headBytesMax is how much of a file's beginning its identity covers.
const headBytesMax = 4096

// Open starts after position, empty being the beginning, and gives the file's identity there.
// identity is what it was when last seen, empty where unknown. A file that is shorter than the
// position, has another head or ends a line elsewhere is stream.ErrPositionLost. A file that
// isn't there is waited for, unless the run is bounded or had already read some of it.
func (s *Source) Open(
	_ context.Context, position, identity string,
) (newIdentity string, err error) {
	if err := s.Close(); err != nil {
		return "", err
	}
	start, err := parsePosition(position)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", s.config.Path, err)
	}
	s.delivered, s.head, s.header = start, nil, nil
	err = s.start(0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", s.openMissing(start, err)
	}
	if err != nil {
		return "", err
	}
	if err := s.resume(start, identity); err != nil {
		return "", errors.Join(err, s.Close())
	}
	return s.Identity(), nil
}

func (s *Source) openMissing(start int64, err error) error {
	switch {
	case start > 0:
		return s.lost("bytes from %d on are missing: the file is gone", start)
	case s.bounded:
		return s.missing(err)
	}
	return nil
}

// resume checks that the opened file is the one that was read up to start and goes there.
func (s *Source) resume(start int64, identity string) error {
	if err := s.checkHead(identity, start); err != nil {
		return err
	}
	if start == 0 {
		return nil
	}
	if s.config.Format == "csv" {
		if err := s.readHeader(); err != nil {
			return err
		}
	}
	if err := s.start(start); err != nil {
		return err
	}
	// A last line without newline was read when the file was sealed: nothing may follow it.
	if !s.content.afterNewline && !s.content.ended {
		return s.lost("byte %d is inside a line: the file was rewritten, or grew after it was sealed",
			start)
	}
	s.delivered = start
	return nil
}

// start opens the file at an offset and makes the window empty there.
func (s *Source) start(offset int64) error {
	if err := s.Close(); err != nil {
		return err
	}
	opened, head, err := openContent(s.config.Path, s.gzip, offset)
	if short := (shortError{}); errors.As(err, &short) {
		return s.lost("bytes %d to %d are missing: the file shrank", short.size, offset)
	}
	if err != nil {
		return err
	}
	s.content, s.head, s.skipped, s.idle = opened, head, nil, false
	s.window = window{offset: offset}
	return nil
}

// checkHead compares the file's head with an identity known from before.
func (s *Source) checkHead(identity string, start int64) error {
	if identity == "" {
		return nil
	}
	parts := strings.Split(identity, ":")
	if len(parts) != 3 {
		return s.lost("bytes 0 to %d: its identity was %q, which is no file's", start, identity)
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return s.lost("bytes 0 to %d: its identity was %q, which is no file's", start, identity)
	}
	if n > int64(len(s.head)) {
		return s.lost("bytes %d to %d are missing: the file shrank", len(s.head), max(n, start))
	}
	if identityOf(s.head, n) != identity {
		return s.lost("bytes 0 to %d are missing: the file begins differently, it was replaced", start)
	}
	return nil
}

// checkSame makes sure, at the present end, that the path still leads to the file being read.
func (s *Source) checkSame() error {
	if s.bounded {
		return nil
	}
	size, same, err := s.content.present()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at %s: %w", s.config.Path, err)
	case err != nil, !same:
		return s.lost("bytes from %d on are missing: the file was moved or replaced", s.delivered)
	case size < s.window.end():
		return s.lost("bytes %d to %d are missing: the file shrank", size, s.window.end())
	}
	return nil
}

// checkRewritten finds a file that was emptied and grew past the old end between two looks.
func (s *Source) checkRewritten() error {
	now, err := s.content.beginning(len(s.head))
	if err != nil {
		return err
	}
	if !bytes.Equal(now, s.head) {
		return s.lost("bytes from %d on are missing: the file was rewritten", s.delivered)
	}
	return nil
}

func (s *Source) lost(format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s; bring the file back; one that holds no less can be read "+
		"from its beginning by tally rebuild --auto",
		stream.ErrPositionLost, s.config.Path, fmt.Sprintf(format, args...))
}

// Compare orders two positions.
func (s *Source) Compare(_ context.Context, a, b string) (int, error) {
	first, err := parsePosition(a)
	if err != nil {
		return 0, fmt.Errorf("compare positions of %s: %w", s.config.Path, err)
	}
	second, err := parsePosition(b)
	if err != nil {
		return 0, fmt.Errorf("compare positions of %s: %w", s.config.Path, err)
	}
	return cmp.Compare(first, second), nil
}

func parsePosition(position string) (int64, error) {
	if position == "" {
		return 0, nil
	}
	offset, err := strconv.ParseInt(position, 10, 64)
	if err != nil || offset < 0 {
		return 0, fmt.Errorf("%w: position %q is no byte offset", stream.ErrPositionLost, position)
	}
	return offset, nil
}

// identityOf gives the identity of a file with this head that was read up to position; it can be
// computed again as the file grows.
func identityOf(head []byte, position int64) string {
	n := min(position, int64(len(head)))
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("sha256:%d:%x", n, sha256.Sum256(head[:n]))
}
