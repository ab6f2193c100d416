// SPDX-License-Identifier: Apache-2.0

package parquetexporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"sync"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/exporter/parquetexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/columns/spool"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// uploader uploads the files of a spool, the oldest first, one at a time. A file is one object, by one request: the
// object is there as a whole or not at all.
type uploader struct {
	config *S3Config
	node   string
	spool  *spool.Spool
	store  *minio.Client
	idle   func() // closes connections
	log    *zap.Logger
	meter  *metadata.TelemetryBuilder

	signal chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newUploader(c *S3Config, s *spool.Spool, log *zap.Logger, meter *metadata.TelemetryBuilder) (*uploader, error) {
	u := &uploader{config: c, node: c.Node, spool: s, log: log, meter: meter, signal: make(chan struct{}, 1)}
	if u.node == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("find name of host: %w; want s3::node", err)
		}
		u.node = host
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	u.idle = transport.CloseIdleConnections
	var err error
	u.store, err = minio.New(c.Endpoint, &minio.Options{
		Creds: c.credentials(), Secure: !c.Insecure, Region: c.Region, Transport: transport,
		MaxRetries: 1, // the uploader repeats
	})
	if err != nil {
		return nil, fmt.Errorf("make client of store %s: %w", c.Endpoint, err)
	}
	return u, nil
}

func (c *S3Config) credentials() *credentials.Credentials {
	if c.AccessKey != "" {
		return credentials.NewStaticV4(c.AccessKey, string(c.SecretKey), "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}})
}

func (u *uploader) start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	u.done.Add(1)
	go u.run(ctx)
}

// stop ends the upload under way. The store has the whole object or none of it.
func (u *uploader) stop() {
	u.cancel()
	u.done.Wait()
	u.idle()
}

// wake makes the uploader look for files. It does not wait.
func (u *uploader) wake() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

func (u *uploader) run(ctx context.Context) {
	defer u.done.Done()
	delay := deliver.NewBackoff(&u.config.Retry)
	for {
		file, n := u.spool.Unsent()
		if n == 0 {
			select {
			case <-ctx.Done():
				return
			case <-u.signal:
			}
			continue
		}
		err := u.upload(ctx, file)
		if ctx.Err() != nil {
			return
		}
		if err == nil || errors.Is(err, errGone) {
			u.spool.Sent(file)
			if err == nil {
				u.count("uploaded")
			}
			delay.Reset()
			continue
		}
		u.count("failed")
		wait := delay.Next()
		u.log.Warn("A file cannot be uploaded; it stays in the folder", zap.String("file", file.Path), zap.Int("waiting", n), zap.Duration("next", wait), zap.Error(err))
		if !deliver.Sleep(ctx, wait) {
			return
		}
	}
}

func (u *uploader) count(outcome string) {
	u.meter.ExporterParquetUploads.Add(context.Background(), 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// errGone is the error of a file that is not there any more: it made room for others.
var errGone = errors.New("the file was deleted")

// upload puts a file as an object.
func (u *uploader) upload(ctx context.Context, file spool.File) error {
	ctx, cancel := context.WithTimeout(ctx, u.config.Timeout)
	defer cancel()
	f, err := os.Open(u.spool.Path(file))
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	key := u.key(file)
	if file.Earlier {
		if have, err := u.store.StatObject(ctx, u.config.Bucket, key, minio.StatObjectOptions{}); err == nil && have.Size == file.Size {
			return nil // an earlier run has uploaded it
		}
	}
	_, err = u.store.PutObject(ctx, u.config.Bucket, key, f, file.Size, minio.PutObjectOptions{ContentType: "application/vnd.apache.parquet", DisableMultipart: true})
	if err != nil {
		return fmt.Errorf("put object %s into bucket %s: %w", key, u.config.Bucket, err)
	}
	return nil
}

// key returns the name of the object: that of the file, with the node in front of its last part.
func (u *uploader) key(file spool.File) string {
	folder, name := path.Split(file.Path)
	return path.Join(u.config.Prefix, folder, spool.Folder(u.node), name)
}
