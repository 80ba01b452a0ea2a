package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err := os.Setenv(name, "test"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

var ours = Of{Reconciliation: "payments", Generation: 3, Shard: 1}

// places gives an archive of each kind.
func places(t *testing.T, keep int, test func(t *testing.T, a *Archive)) {
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		test(t, open(t, "file://"+filepath.ToSlash(t.TempDir())+"/new/archive", keep))
	})
	t.Run("bucket", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(&fakeS3{objects: map[string][]byte{}})
		t.Cleanup(server.Close)
		endpoint := strings.TrimPrefix(server.URL, "http://")
		test(t, open(t, "s3://audit/a/prefix?region=us-east-1&insecure=true&endpoint="+endpoint, keep))
	})
}

func open(t *testing.T, location string, keep int) *Archive {
	t.Helper()
	a, err := Open(location, keep)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func writing(epoch int64, text string) func(context.Context, io.Writer) (int64, error) {
	return func(_ context.Context, w io.Writer) (int64, error) {
		_, err := io.WriteString(w, text)
		return epoch, err
	}
}

func take(t *testing.T, a *Archive, epoch int64, text string) Snapshot {
	t.Helper()
	s, err := a.Take(t.Context(), ours, writing(epoch, text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, a *Archive, s Snapshot) (string, error) {
	t.Helper()
	r, err := a.Read(t.Context(), s)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	return string(text), err
}

func (a *Archive) epochs(t *testing.T) (list []int64) {
	t.Helper()
	found, err := a.List(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found {
		list = append(list, s.Epoch)
	}
	return list
}

// all gives the names of all files of the shard.
func (a *Archive) all(t *testing.T) (names []string) {
	t.Helper()
	entries, err := a.files.list(t.Context(), ours.prefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.name)
	}
	return names
}

func TestTakeKeepsTheNewest(t *testing.T) {
	t.Parallel()
	places(t, 3, func(t *testing.T, a *Archive) {
		if got := a.epochs(t); len(got) != 0 {
			t.Errorf("an empty archive has %v", got)
		}
		for epoch := range int64(12) {
			s := take(t, a, epoch+1, fmt.Sprint("content of ", epoch+1))
			want := "payments/generation-3/shard-1/" + fmt.Sprintf("epoch-%019d.tally.zst", epoch+1)
			if s.Name != want || s.Epoch != epoch+1 || s.Bytes == 0 {
				t.Errorf("took %+v", s)
			}
		}
		if got := a.epochs(t); !slices.Equal(got, []int64{12, 11, 10}) {
			t.Errorf("epochs %v", got)
		}
		list, err := a.List(t.Context(), ours)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if age := time.Since(s.Modified); age < -time.Minute || age > time.Minute {
				t.Errorf("epoch %d was written %s ago", s.Epoch, age)
			}
			if text, err := read(t, a, s); err != nil || text != fmt.Sprint("content of ", s.Epoch) {
				t.Errorf("epoch %d: %q %v", s.Epoch, text, err)
			}
		}
		other, err := a.List(t.Context(), Of{Reconciliation: "payments", Generation: 3, Shard: 10})
		if err != nil || len(other) != 0 {
			t.Errorf("another shard has %v (%v)", other, err)
		}
	})
}

func TestTwoAreKeptAtLeast(t *testing.T) {
	t.Parallel()
	places(t, 0, func(t *testing.T, a *Archive) {
		for epoch := range int64(4) {
			take(t, a, epoch+1, "x")
		}
		if got := a.epochs(t); !slices.Equal(got, []int64{4, 3}) {
			t.Errorf("epochs %v", got)
		}
	})
}

// TestOneIsNeverReplaced: neither by another of the same epoch, unless it is damaged.
func TestOneIsNeverReplaced(t *testing.T) {
	t.Parallel()
	places(t, 2, func(t *testing.T, a *Archive) {
		s := take(t, a, 7, "first")
		take(t, a, 7, "second")
		if text, err := read(t, a, s); err != nil || text != "first" {
			t.Errorf("read %q %v", text, err)
		}
		a.overwrite(t, s.Name, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		s = take(t, a, 7, "third")
		if text, err := read(t, a, s); err != nil || text != "third" {
			t.Errorf("read %q %v", text, err)
		}
		if got := a.all(t); len(got) != 1 {
			t.Errorf("left %v", got)
		}
	})
}

// overwrite changes a file by hand.
func (a *Archive) overwrite(t *testing.T, name string, change func([]byte) []byte) {
	t.Helper()
	file, _, err := a.files.read(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close(), a.files.remove(t.Context(), name)); err != nil {
		t.Fatal(err)
	}
	err = a.files.stage(t.Context(), name, func(w io.Writer) error {
		_, err := w.Write(change(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryFlippedByteIsNoticed, and everything that is cut or appended.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	content := make([]byte, 3000)
	for i := range content {
		content[i] = byte(random.IntN(7))
	}
	var whole bytes.Buffer
	p, err := newPacker(&whole)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(content); err != nil {
		t.Fatal(err)
	}
	if _, err := p.close(); err != nil {
		t.Fatal(err)
	}
	unpack := func(b []byte) ([]byte, error) {
		u, err := newUnpacker(io.NopCloser(bytes.NewReader(b)), int64(len(b)))
		if err != nil {
			return nil, err
		}
		defer func() { _ = u.Close() }()
		return io.ReadAll(u)
	}
	good := whole.Bytes()
	if got, err := unpack(good); err != nil || !bytes.Equal(got, content) {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << random.IntN(8)
		if _, err := unpack(bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d flipped: %v, want ErrDamaged", i, err)
		}
		if _, err := unpack(good[:i]); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d: %v, want ErrDamaged", i, err)
		}
	}
	if _, err := unpack(append(bytes.Clone(good), 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte more: %v, want ErrDamaged", err)
	}
}

// TestDamageInPlaceIsNoticed reads through the archive itself.
func TestDamageInPlaceIsNoticed(t *testing.T) {
	t.Parallel()
	places(t, 2, func(t *testing.T, a *Archive) {
		older, newer := take(t, a, 1, "older"), take(t, a, 2, "newer")
		a.overwrite(t, newer.Name, func(b []byte) []byte { b[9] ^= 4; return b })
		if _, err := read(t, a, newer); !errors.Is(err, ErrDamaged) {
			t.Errorf("a flipped bit: %v, want ErrDamaged", err)
		}
		if text, err := read(t, a, older); err != nil || text != "older" {
			t.Errorf("read %q %v", text, err)
		}
	})
}

// TestKilledWhileStaging: the next one removes what is left, and nothing half written is listed.
func TestKilledWhileStaging(t *testing.T) {
	t.Parallel()
	places(t, 2, func(t *testing.T, a *Archive) {
		take(t, a, 1, "one")
		take(t, a, 2, "two")
		leave := func(name string) {
			err := a.files.stage(t.Context(), ours.prefix()+"/"+name, func(w io.Writer) error {
				_, err := io.WriteString(w, "half of")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		leave("KILLED" + suffixStaged)
		if got := a.epochs(t); !slices.Equal(got, []int64{2, 1}) {
			t.Errorf("epochs %v", got)
		}
		errStop := errors.New("stop")
		_, err := a.Take(t.Context(), ours, func(_ context.Context, w io.Writer) (int64, error) {
			_, _ = io.WriteString(w, "something")
			return 3, errStop
		})
		if !errors.Is(err, errStop) {
			t.Errorf("got %v, want the error of what is written", err)
		}
		if got := a.all(t); len(got) != 2 {
			t.Errorf("left %v", got)
		}
		take(t, a, 4, "four")
		if got := a.epochs(t); !slices.Equal(got, []int64{4, 2}) {
			t.Errorf("epochs %v", got)
		}
	})
}

// spoiling changes files on their way.
type spoiling struct {
	files
	staged, promoted bool
	removed          []string
}

func (s *spoiling) flip(ctx context.Context, name string) error {
	file, _, err := s.read(ctx, name)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close(), s.files.remove(ctx, name)); err != nil {
		return err
	}
	content[10] ^= 2
	return s.files.stage(ctx, name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func (s *spoiling) stage(ctx context.Context, name string, write func(io.Writer) error) error {
	err := s.files.stage(ctx, name, write)
	if err == nil && s.staged {
		err = s.flip(ctx, name)
	}
	return err
}

func (s *spoiling) promote(ctx context.Context, staged, name string) error {
	err := s.files.promote(ctx, staged, name)
	if err == nil && s.promoted {
		err = s.flip(ctx, name)
	}
	return err
}

func (s *spoiling) remove(ctx context.Context, name string) error {
	s.removed = append(s.removed, name)
	return s.files.remove(ctx, name)
}

// TestNothingIsRemovedForADamagedOne: older snapshots go only once the new one was read back.
func TestNothingIsRemovedForADamagedOne(t *testing.T) {
	t.Parallel()
	for _, staged := range []bool{true, false} {
		t.Run(fmt.Sprint("while it is staged: ", staged), func(t *testing.T) {
			t.Parallel()
			places(t, 2, func(t *testing.T, a *Archive) {
				take(t, a, 1, "one")
				take(t, a, 2, "two")
				s := &spoiling{files: a.files, staged: staged, promoted: !staged}
				a.files = s
				_, err := a.Take(t.Context(), ours, writing(3, "three"))
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("took what was damaged on its way: %v, want ErrDamaged", err)
				}
				for _, name := range s.removed {
					if !strings.HasSuffix(name, suffixStaged) {
						t.Errorf("removed %s", name)
					}
				}
			})
		})
	}
}

func TestNamesAreHarmless(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, name := range []string{
		"..", ".", "a/b", "a%2Fb", "../../etc", "a b", "ä", "a\x00", "A-b_9", "",
	} {
		prefix := Of{Reconciliation: name}.prefix()
		if strings.Count(prefix, "/") != 2 || strings.ContainsAny(prefix, ". \x00") {
			t.Errorf("%q is kept under %q", name, prefix)
		}
		if other, twice := seen[prefix]; twice {
			t.Errorf("%q and %q are kept under %q", name, other, prefix)
		}
		seen[prefix] = name
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, location := range []string{
		"", "/var/lib", "file:relative", "file://host/dir", "s3://", "s3://bucket?insecure=perhaps",
		"s3://bucket?secret=x", "s3://id:key@bucket", "ftp://host/dir", "http://%zz",
	} {
		if _, err := Open(location, 2); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %v, want ErrURL", location, err)
		}
	}
	for _, location := range []string{
		"file:///var/lib/tally", "file://localhost/var/lib/tally", "s3://bucket",
		"s3://bucket/prefix/?region=eu-central-1", "s3://bucket?endpoint=storage.googleapis.com",
	} {
		if _, err := Open(location, 2); err != nil {
			t.Errorf("%q: %v", location, err)
		}
	}
}
