package file

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// content is an open file as the bytes it holds, decompressed where it's gzip.
type content struct {
	file *os.File
	path string
	// reader gives the bytes from the opened offset on.
	reader io.Reader
	// afterNewline and ended tell what stood around the offset when it was opened.
	afterNewline, ended bool
}

// shortError reports that the file ends before the offset asked for.
type shortError struct{ size int64 }

func (e shortError) Error() string { return fmt.Sprintf("the file has %d bytes", e.size) }

// openContent opens the file at an offset, and gives its beginning, up to headBytesMax.
func openContent(path string, compressed bool, offset int64) (*content, []byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil, fmt.Errorf("%w: %w; give the worker's user the right to read it",
			stream.ErrUnusable, err)
	}
	if err != nil {
		return nil, nil, err
	}
	c := &content{file: file, path: path, reader: file}
	head, err := c.begin(compressed, offset)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return c, head, nil
}

func (c *content) begin(compressed bool, offset int64) ([]byte, error) {
	info, err := c.file.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", c.path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", stream.ErrUnusable, c.path)
	}
	if compressed {
		return c.inflate(info.Size(), offset)
	}
	if offset > info.Size() {
		return nil, shortError{info.Size()}
	}
	head, err := c.beginning(headBytesMax)
	if err != nil {
		return nil, err
	}
	if offset > 0 {
		var before [1]byte
		if _, err := c.file.ReadAt(before[:], offset-1); err != nil {
			return nil, fmt.Errorf("read %s: %w", c.path, err)
		}
		c.afterNewline = before[0] == '\n'
	}
	c.ended = offset == info.Size()
	if _, err := c.file.Seek(offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("seek in %s: %w", c.path, err)
	}
	return head, nil
}

// inflate decompresses up to the present size, skipping to the offset.
func (c *content) inflate(size, offset int64) ([]byte, error) {
	inflated, err := gzip.NewReader(io.LimitReader(c.file, size))
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", c.path, err)
	}
	buffered := bufio.NewReaderSize(inflated, 1<<16)
	peeked, err := buffered.Peek(headBytesMax)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decompress %s: %w", c.path, err)
	}
	head := append([]byte(nil), peeked...)
	if offset > 0 {
		skipped, err := io.CopyN(io.Discard, buffered, offset-1)
		if errors.Is(err, io.EOF) {
			return nil, shortError{skipped}
		}
		if err != nil {
			return nil, fmt.Errorf("decompress %s: %w", c.path, err)
		}
		before, err := buffered.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil, shortError{skipped}
		}
		c.afterNewline = before == '\n'
	}
	_, err = buffered.Peek(1)
	c.ended = errors.Is(err, io.EOF)
	c.reader = buffered
	return head, nil
}

// beginning gives up to n bytes of the stored file's beginning as it is now.
func (c *content) beginning(n int) ([]byte, error) {
	head := make([]byte, n)
	got, err := c.file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", c.path, err)
	}
	return head[:got], nil
}

// present looks at the path again: the size there, and whether it's still the open file.
func (c *content) present() (size int64, same bool, err error) {
	opened, err := c.file.Stat()
	if err != nil {
		return 0, false, err
	}
	there, err := os.Stat(c.path)
	if err != nil {
		return 0, false, err
	}
	return there.Size(), os.SameFile(opened, there), nil
}

func (c *content) close() error { return c.file.Close() }
