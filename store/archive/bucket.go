package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// endpointDefault is where buckets are when the URL doesn't say.
const endpointDefault = "s3.amazonaws.com"

// copyMax is the largest object that a store copies at once; larger ones are copied in parts.
const copyMax = 5 << 30

// bucket keeps objects in a store that speaks S3.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

func newBucket(u *url.URL) (*bucket, error) {
	options := u.Query()
	endpoint, region := options.Get("endpoint"), options.Get("region")
	insecure, err := strconv.ParseBool(cmp.Or(options.Get("insecure"), "false"))
	if err != nil {
		return nil, fmt.Errorf("%w: insecure=%q: want true or false", ErrURL, options.Get("insecure"))
	}
	for key := range options {
		if key != "endpoint" && key != "region" && key != "insecure" {
			return nil, fmt.Errorf("%w: it has %q; want endpoint, region or insecure", ErrURL, key)
		}
	}
	if u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%w: want s3://bucket/prefix; credentials come from the environment",
			ErrURL)
	}
	client, err := minio.New(cmp.Or(endpoint, endpointDefault), &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{},
		}),
		Region: region, Secure: !insecure,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	return &bucket{client, u.Host, strings.Trim(u.Path, "/")}, nil
}

func (b *bucket) key(name string) string { return path.Join(b.prefix, name) }

// stage writes to a local file first: while the network is slow nobody waits but this, least of all
// a transaction.
func (b *bucket) stage(
	ctx context.Context, name string, write func(io.Writer) error,
) (err error) {
	spool, err := os.CreateTemp("", "tally-archive-*")
	if err != nil {
		return err
	}
	// Gone at once where an open file can be, so that nothing is left of a process that is killed.
	removed := os.Remove(spool.Name()) == nil
	defer func() {
		err = errors.Join(err, spool.Close())
		if !removed {
			err = errors.Join(err, os.Remove(spool.Name()))
		}
	}()
	if err := write(spool); err != nil {
		return err
	}
	size, err := spool.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	_, err = b.client.PutObject(ctx, b.name, b.key(name), spool, size, minio.PutObjectOptions{
		ContentType: "application/zstd",
	})
	return err
}

// promote looks whether the name is taken, since a copy would replace: two that do it at once have
// written the same epoch.
func (b *bucket) promote(ctx context.Context, staged, name string) error {
	_, err := b.client.StatObject(ctx, b.name, b.key(name), minio.StatObjectOptions{})
	switch {
	case err == nil:
		return errExists
	case !missing(err):
		return err
	}
	from, err := b.client.StatObject(ctx, b.name, b.key(staged), minio.StatObjectOptions{})
	if err != nil {
		return err
	}
	source := minio.CopySrcOptions{Bucket: b.name, Object: b.key(staged)}
	target := minio.CopyDestOptions{Bucket: b.name, Object: b.key(name)}
	if from.Size > copyMax {
		_, err = b.client.ComposeObject(ctx, target, source)
	} else {
		_, err = b.client.CopyObject(ctx, target, source)
	}
	return err
}

func (b *bucket) read(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	object, err := b.client.GetObject(ctx, b.name, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, 0, err
	}
	info, err := object.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, object.Close())
	}
	return object, info.Size, nil
}

func (b *bucket) remove(ctx context.Context, name string) error {
	err := b.client.RemoveObject(ctx, b.name, b.key(name), minio.RemoveObjectOptions{})
	if missing(err) {
		return nil
	}
	return err
}

func (b *bucket) list(ctx context.Context, prefix string) (list []entry, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	objects := b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{
		Prefix: b.key(prefix) + "/",
	})
	for object := range objects {
		if object.Err != nil {
			return nil, object.Err
		}
		name := path.Join(prefix, path.Base(object.Key))
		list = append(list, entry{name, object.Size, object.LastModified})
	}
	return list, nil
}

func missing(err error) bool {
	return err != nil && minio.ToErrorResponse(err).Code == minio.NoSuchKey
}
