// SPDX-License-Identifier: Apache-2.0

package parquetexporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/thread"
)

// Config configures the parquet exporter.
type Config struct {
	// Directory is the folder of the files. It belongs to one exporter.
	Directory string `mapstructure:"directory"`
	// MaxMegabytes bounds all files, in 2^20 bytes. The oldest are deleted.
	MaxMegabytes int64 `mapstructure:"max_megabytes"`
	// FlushInterval is how long an operation is in memory at most before its file is written.
	FlushInterval time.Duration `mapstructure:"flush_interval"`
	// File is when a file is closed before.
	File FileConfig `mapstructure:"file"`
	// BufferMegabytes bounds the memory of operations that are in no file yet, in 2^20 bytes. Beyond, the largest file
	// is closed.
	BufferMegabytes int `mapstructure:"buffer_megabytes"`
	// TimeResolution is exact, or 100ns: then files are smaller.
	TimeResolution string `mapstructure:"time_resolution"`
	// Nice is the nice value of the thread that encodes, 0 to 19. It is used on Linux.
	Nice int `mapstructure:"nice"`
	// Cores are the numbers of the processors on which the thread runs; none: all. It is for Linux.
	Cores []int `mapstructure:"cores"`
	// S3 is the store that files are uploaded to; nil: none is.
	S3 *S3Config `mapstructure:"s3"`
	// Queue holds requests while the thread is busy or the disk is full. With none, the sender waits.
	Queue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	// Retry is how often a request is repeated that was refused.
	Retry configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	_ struct{}
}

// FileConfig is when a file is closed. A file is closed after FlushInterval in any case.
type FileConfig struct {
	// MaxOperations is how many operations a file has at most.
	MaxOperations int64 `mapstructure:"max_operations"`
	// MaxMegabytes is the size of a file, in 2^20 bytes. A file has a row group more at most.
	MaxMegabytes int64 `mapstructure:"max_megabytes"`
	// MaxSteps is how many steps of a job a file has, from a multiple of it on; 0: as many as come.
	MaxSteps int64 `mapstructure:"max_steps"`

	_ struct{}
}

// S3Config is an S3-compatible store.
type S3Config struct {
	// Endpoint is the host of the store, with a port where it needs one, and without a scheme.
	Endpoint string `mapstructure:"endpoint"`
	// Bucket must exist.
	Bucket string `mapstructure:"bucket"`
	// Prefix is in front of the key of each object.
	Prefix string `mapstructure:"prefix"`
	// Region is that of the bucket; empty: the store is asked.
	Region string `mapstructure:"region"`
	// Node is in the key of each object, so that files of two nodes are two objects; empty: the host's name.
	Node string `mapstructure:"node"`
	// AccessKey and SecretKey are credentials; empty: those of the environment or of the machine.
	AccessKey string              `mapstructure:"access_key"`
	SecretKey configopaque.String `mapstructure:"secret_key"`
	// Insecure uses HTTP in place of HTTPS.
	Insecure bool `mapstructure:"insecure"`
	// Timeout bounds one upload.
	Timeout time.Duration `mapstructure:"timeout"`
	// Retry is how long an upload that failed waits for the next attempt. It is tried as long as the file is there.
	Retry configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	_ struct{}
}

// Values of time_resolution.
const (
	resolutionExact = "exact"
	resolution100ns = "100ns"
)

var resolutions = map[string]columns.Resolution{resolutionExact: columns.Exact, resolution100ns: columns.HundredNanosecs}

// Defaults. A node of eight ranks that emits 10,000 operations a second each writes about 1 MB/s.
const (
	defaultMegabytes       = 10 << 10
	defaultFlush           = 10 * time.Second
	defaultFileOperations  = 1 << 20
	defaultFileMegabytes   = 16
	defaultBufferMegabytes = 128
	defaultNice            = 10
	defaultQueueBytes      = 32 << 20
	defaultTimeout         = time.Minute

	maxMegabytes       = 1 << 30
	maxFileOperations  = 1 << 24
	maxFileMegabytes   = 1 << 10
	minBufferMegabytes = 16
	maxBufferMegabytes = 1 << 14
)

// defaultRetry never gives up: what comes meanwhile waits in the queue, and then with the sender.
var defaultRetry = configretry.BackOffConfig{
	Enabled: true, InitialInterval: time.Second, Multiplier: 1.5, RandomizationFactor: 0.5, MaxInterval: 5 * time.Second,
}

// defaultUploadRetry leaves a store that fails alone for minutes.
var defaultUploadRetry = configretry.BackOffConfig{
	Enabled: true, InitialInterval: time.Second, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: 2 * time.Minute,
}

func newDefaultConfig() *Config {
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer, queue.QueueSize, queue.NumConsumers = exporterhelper.RequestSizerTypeBytes, defaultQueueBytes, 1
	return &Config{
		MaxMegabytes: defaultMegabytes, FlushInterval: defaultFlush, BufferMegabytes: defaultBufferMegabytes,
		File:           FileConfig{MaxOperations: defaultFileOperations, MaxMegabytes: defaultFileMegabytes},
		TimeResolution: resolutionExact, Nice: defaultNice, Queue: configoptional.Some(queue), Retry: defaultRetry,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	if c.Directory == "" {
		errs = append(errs, errors.New("check directory: got none; want a folder for files of this exporter alone"))
	}
	within := func(key string, got, least, most int64) {
		if got < least || got > most {
			errs = append(errs, fmt.Errorf("check %s: got %d; want %d to %d", key, got, least, most))
		}
	}
	within("file::max_megabytes", c.File.MaxMegabytes, 1, maxFileMegabytes)
	within("max_megabytes", c.MaxMegabytes, 2*max(c.File.MaxMegabytes, 1), maxMegabytes)
	within("file::max_operations", c.File.MaxOperations, 1, maxFileOperations)
	within("buffer_megabytes", int64(c.BufferMegabytes), minBufferMegabytes, maxBufferMegabytes)
	within("nice", int64(c.Nice), 0, thread.MaxNice)
	if c.File.MaxSteps < 0 {
		errs = append(errs, fmt.Errorf("check file::max_steps: got %d; want 0 or more", c.File.MaxSteps))
	}
	if c.FlushInterval < time.Second {
		errs = append(errs, fmt.Errorf("check flush_interval: got %v; want 1s or more", c.FlushInterval))
	}
	if resolutions[c.TimeResolution] == 0 {
		errs = append(errs, fmt.Errorf("check time_resolution: got %q; want %s or %s", c.TimeResolution, resolutionExact, resolution100ns))
	}
	if i := slices.IndexFunc(c.Cores, func(core int) bool { return core < 0 }); i >= 0 {
		errs = append(errs, fmt.Errorf("check cores: got %d; want numbers of processors, from 0", c.Cores[i]))
	}
	return errors.Join(errs...)
}

func newDefaultS3() S3Config { return S3Config{Timeout: defaultTimeout, Retry: defaultUploadRetry} }

// Validate reports every field that is missing.
func (c *S3Config) Validate() error {
	var errs []error
	if c.Endpoint == "" || strings.Contains(c.Endpoint, "/") {
		errs = append(errs, fmt.Errorf("check endpoint: got %q; want a host, as s3.example.com:9000, without a scheme", c.Endpoint))
	}
	if c.Bucket == "" {
		errs = append(errs, errors.New("check bucket: got none; want a bucket that exists"))
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		errs = append(errs, errors.New("check access_key and secret_key: got one of them; want both, or none for those of the environment or the machine"))
	}
	if c.Timeout < time.Second {
		errs = append(errs, fmt.Errorf("check timeout: got %v; want 1s or more", c.Timeout))
	}
	return errors.Join(errs...)
}
