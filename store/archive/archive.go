// Package archive keeps snapshots of shards outside the database, in a directory or an object
// store, such that none is used that is not what was written.
package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	// ErrURL reports a URL that names no archive.
	ErrURL = errors.New("not the URL of an archive")
	// ErrDamaged reports a snapshot that is not what was written.
	ErrDamaged = errors.New("the archived snapshot is damaged")
)

// KeepMin is the fewest snapshots that are kept of a shard.
const KeepMin = 2

// Archive is a place where snapshots are kept: a prefix for each shard, and there one object for
// each snapshot, which is never changed.
type Archive struct {
	files files
	keep  int
}

// files is a directory or a bucket. Names are separated by slashes.
type files interface {
	// stage writes a new file, which lasts once this returns.
	stage(ctx context.Context, name string, write func(io.Writer) error) error
	// promote gives a staged file its final name, at once and whole. It returns errExists rather
	// than replace another.
	promote(ctx context.Context, staged, name string) error
	read(ctx context.Context, name string) (file io.ReadCloser, bytes int64, err error)
	// remove is content when there is no such file.
	remove(ctx context.Context, name string) error
	// list gives the names and sizes of what is directly under a prefix; nothing where there is none.
	list(ctx context.Context, prefix string) ([]entry, error)
}

type entry struct {
	name     string
	bytes    int64
	modified time.Time
}

// errExists is promote's when the name is taken.
var errExists = errors.New("the file exists")

// Of says whose snapshots are meant.
type Of struct {
	Reconciliation    string
	Generation, Shard int32
}

// Snapshot is one that the archive holds.
type Snapshot struct {
	// Epoch is the one that it is of.
	Epoch int64
	// Bytes is the size of the object.
	Bytes int64
	// Modified is when it was written, by the clock of the place.
	Modified time.Time
	// Name is the object's, below the archive's URL.
	Name string
}

// Open opens the archive at a URL, and keeps so many snapshots of each shard, at least KeepMin:
//
//	file:///var/lib/tally/archive
//	s3://bucket/prefix?region=eu-central-1
//	s3://bucket/prefix?endpoint=minio.example:9000&insecure=true
//
// The credentials of s3 come from the environment (AWS_ACCESS_KEY_ID and so on), the shared file of
// the AWS tools, or the machine's role. Any store that speaks S3 will do; endpoint says where it
// is. Errors wrap ErrURL where another try won't help. Nothing is written yet.
func Open(location string, keep int) (*Archive, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, ErrURL // the URL may hold a secret
	}
	a := &Archive{keep: max(keep, KeepMin)}
	switch u.Scheme {
	case "file":
		a.files, err = newDirectory(u)
	case "s3":
		a.files, err = newBucket(u)
	default:
		err = fmt.Errorf("%w: it begins with %q; want file:///directory or s3://bucket/prefix", ErrURL,
			u.Scheme)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// List gives the snapshots of a shard, the newest first.
func (a *Archive) List(ctx context.Context, of Of) ([]Snapshot, error) {
	entries, err := a.files.list(ctx, of.prefix())
	if err != nil {
		return nil, fmt.Errorf("list the archive under %s: %w", of.prefix(), err)
	}
	var list []Snapshot
	for _, e := range entries {
		if epoch, ok := epochOf(path.Base(e.name)); ok {
			list = append(list, Snapshot{epoch, e.bytes, e.modified, e.name})
		}
	}
	slices.SortFunc(list, func(x, y Snapshot) int { return strings.Compare(y.Name, x.Name) })
	return list, nil
}

// Read gives a snapshot as it was written. It fails with ErrDamaged, at the latest in place of the
// end, when it is not what was written.
func (a *Archive) Read(ctx context.Context, s Snapshot) (io.ReadCloser, error) {
	file, size, err := a.files.read(ctx, s.Name)
	if err != nil {
		return nil, fmt.Errorf("read %s from the archive: %w", s.Name, err)
	}
	u, err := newUnpacker(file, size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s from the archive: %w", s.Name, err), file.Close())
	}
	return u, nil
}

// Take adds a snapshot, which write writes, and gives the epoch that it turned out to be of. It is
// staged under a temporary name, read back, given its name, and read back again; only then are
// older ones removed, down to the number to keep. What others that were killed have staged is
// removed as well. Two that take snapshots of a shard at once do each other no harm: one may fail.
func (a *Archive) Take(
	ctx context.Context, of Of, write func(context.Context, io.Writer) (epoch int64, err error),
) (Snapshot, error) {
	if err := a.removeStaged(ctx, of); err != nil {
		return Snapshot{}, err
	}
	staged := path.Join(of.prefix(), rand.Text()+suffixStaged)
	var sum checksum
	var s Snapshot
	err := a.files.stage(ctx, staged, func(w io.Writer) (err error) {
		p, err := newPacker(w)
		if err != nil {
			return err
		}
		s.Epoch, err = write(ctx, p)
		closed, closeErr := p.close()
		sum, s.Bytes = closed, p.bytes
		return errors.Join(err, closeErr)
	})
	if err == nil {
		s.Name = path.Join(of.prefix(), fmt.Sprintf("%s%019d%s", prefixEpoch, s.Epoch, suffix))
		err = a.promote(ctx, staged, s, sum)
	}
	err = errors.Join(err, a.files.remove(context.WithoutCancel(ctx), staged))
	if err != nil {
		return Snapshot{}, fmt.Errorf("archive a snapshot under %s: %w", of.prefix(), err)
	}
	return s, a.prune(ctx, of)
}

// promote checks what was staged before and after it gets its name.
func (a *Archive) promote(ctx context.Context, staged string, s Snapshot, sum checksum) error {
	if err := a.check(ctx, staged, sum); err != nil {
		return err
	}
	err := a.files.promote(ctx, staged, s.Name)
	if errors.Is(err, errExists) {
		if a.checkAny(ctx, s.Name) == nil {
			return nil // one of the same epoch is as good
		}
		if err := a.files.remove(ctx, s.Name); err != nil {
			return err
		}
		err = a.files.promote(ctx, staged, s.Name)
	}
	if err != nil {
		return err
	}
	return a.check(ctx, s.Name, sum)
}

// check reads a file and compares it with what was written.
func (a *Archive) check(ctx context.Context, name string, want checksum) error {
	file, size, err := a.files.read(ctx, name)
	if err != nil {
		return err
	}
	got, err := sumOf(file, size)
	if err == nil && got != want {
		err = fmt.Errorf("%w: %s is not what was written", ErrDamaged, name)
	}
	return errors.Join(err, file.Close())
}

// checkAny reads a file and compares it with its own checksum.
func (a *Archive) checkAny(ctx context.Context, name string) error {
	file, size, err := a.files.read(ctx, name)
	if err != nil {
		return err
	}
	_, err = sumOf(file, size)
	return errors.Join(err, file.Close())
}

// prune removes the oldest snapshots.
func (a *Archive) prune(ctx context.Context, of Of) error {
	list, err := a.List(ctx, of)
	if err != nil {
		return err
	}
	for _, s := range list[min(a.keep, len(list)):] {
		if err := a.files.remove(ctx, s.Name); err != nil {
			return fmt.Errorf("remove %s from the archive: %w", s.Name, err)
		}
	}
	return nil
}

func (a *Archive) removeStaged(ctx context.Context, of Of) error {
	entries, err := a.files.list(ctx, of.prefix())
	if err != nil {
		return fmt.Errorf("list the archive under %s: %w", of.prefix(), err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.name, suffixStaged) {
			continue
		}
		if err := a.files.remove(ctx, e.name); err != nil {
			return fmt.Errorf("remove %s, which was never finished, from the archive: %w", e.name, err)
		}
	}
	return nil
}

const (
	prefixEpoch  = "epoch-"
	suffix       = ".tally.zst"
	suffixStaged = ".staged"
)

// prefix is where a shard's snapshots are. A name can hold anything and is made harmless.
func (of Of) prefix() string {
	return fmt.Sprintf("%s/generation-%d/shard-%d", harmless(of.Reconciliation), of.Generation,
		of.Shard)
}

// harmless writes all but letters, digits, - and _ of a name as %XX, and so keeps names apart.
func harmless(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func epochOf(name string) (int64, bool) {
	number, ok := strings.CutPrefix(name, prefixEpoch)
	number, ok2 := strings.CutSuffix(number, suffix)
	epoch, err := strconv.ParseInt(number, 10, 64)
	return epoch, ok && ok2 && err == nil && len(number) == 19
}
