package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
)

// directory keeps files below a directory, for nobody else to read: they hold the events.
type directory struct{ root string }

const (
	directoryMode = 0o700
	fileMode      = 0o600
	writeBytes    = 1 << 20
)

func newDirectory(u *url.URL) (*directory, error) {
	if u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(filepath.FromSlash(u.Path)) {
		return nil, fmt.Errorf("%w: want file:/// and the absolute path of a directory", ErrURL)
	}
	return &directory{filepath.FromSlash(u.Path)}, nil
}

func (d *directory) path(name string) string {
	return filepath.Join(d.root, filepath.FromSlash(name))
}

func (d *directory) stage(_ context.Context, name string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(d.path(name)), directoryMode); err != nil {
		return err
	}
	file, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriterSize(file, writeBytes)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return file.Sync()
}

// promote links, since renaming would replace. Where links are not to be had it looks first.
func (d *directory) promote(_ context.Context, staged, name string) error {
	err := os.Link(d.path(staged), d.path(name))
	switch {
	case errors.Is(err, fs.ErrExist):
		return errExists
	case err != nil:
		if _, statErr := os.Lstat(d.path(name)); statErr == nil {
			return errExists
		}
		if err := os.Rename(d.path(staged), d.path(name)); err != nil {
			return err
		}
	}
	return d.sync(path.Dir(name))
}

// sync makes the names of a directory last.
func (d *directory) sync(name string) error {
	dir, err := os.Open(d.path(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (d *directory) read(_ context.Context, name string) (io.ReadCloser, int64, error) {
	file, err := os.Open(d.path(name))
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

func (d *directory) remove(_ context.Context, name string) error {
	err := os.Remove(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *directory) list(_ context.Context, prefix string) ([]entry, error) {
	found, err := os.ReadDir(d.path(prefix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []entry
	for _, f := range found {
		info, err := f.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed since
		case err != nil:
			return nil, err
		case info.Mode().IsRegular():
			list = append(list, entry{path.Join(prefix, f.Name()), info.Size(), info.ModTime()})
		}
	}
	return list, nil
}
