// SPDX-License-Identifier: Apache-2.0

package parquetexporter

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	plain := newDefaultConfig()
	plain.Directory = "/var/lib/lockstep/operations"
	whole := newDefaultConfig()
	whole.Queue.Get().QueueSize = 1 << 20
	whole.Retry.MaxElapsedTime = time.Minute
	upload := defaultUploadRetry
	upload.InitialInterval = 2 * time.Second
	*whole = Config{
		Directory: plain.Directory, MaxMegabytes: 40960, FlushInterval: 5 * time.Second,
		File: FileConfig{MaxOperations: 100000, MaxMegabytes: 8, MaxSteps: 10}, BufferMegabytes: 64,
		TimeResolution: "100ns", Nice: 19, Cores: []int{0, 1}, Queue: whole.Queue, Retry: whole.Retry,
		S3: &S3Config{
			Endpoint: "s3.example.com:9000", Bucket: "lockstep", Prefix: "operations", Region: "eu-central-1", Node: "n1",
			AccessKey: "key", SecretKey: "secret", Insecure: true, Timeout: 30 * time.Second, Retry: upload,
		},
	}
	for name, want := range map[string]*Config{"parquet": plain, "parquet/all": whole} {
		t.Run(name, func(t *testing.T) {
			sub, err := cm.Sub(name)
			require.NoError(t, err)
			cfg := NewFactory().CreateDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			assert.Equal(t, want, cfg)
			assert.NoError(t, confmap.Validate(cfg))
			assert.NotContains(t, fmt.Sprintf("%+v", cfg.(*Config).S3), "secret:")
		})
	}
}

func TestValidate_EachField_IsNamed(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"check directory: got none; want a folder for files of this exporter alone": func(c *Config) { c.Directory = "" },
		"check max_megabytes: got 31; want 32 to 1073741824":                        func(c *Config) { c.MaxMegabytes = 31 },
		"check flush_interval: got 10ms; want 1s or more":                           func(c *Config) { c.FlushInterval = 10 * time.Millisecond },
		"check file::max_operations: got 0; want 1 to 16777216":                     func(c *Config) { c.File.MaxOperations = 0 },
		"check file::max_megabytes: got 0; want 1 to 1024":                          func(c *Config) { c.File.MaxMegabytes = 0 },
		"check file::max_steps: got -1; want 0 or more":                             func(c *Config) { c.File.MaxSteps = -1 },
		"check buffer_megabytes: got 15; want 16 to 16384":                          func(c *Config) { c.BufferMegabytes = 15 },
		`check time_resolution: got "1us"; want exact or 100ns`:                     func(c *Config) { c.TimeResolution = "1us" },
		"check nice: got -5; want 0 to 19":                                          func(c *Config) { c.Nice = -5 },
		"check cores: got -1; want numbers of processors, from 0":                   func(c *Config) { c.Cores = []int{0, -1} },
	} {
		c := newDefaultConfig()
		c.Directory = "ring"
		change(c)
		assert.EqualError(t, c.Validate(), want)
	}
}

func TestValidateS3_EachField_IsNamed(t *testing.T) {
	for want, change := range map[string]func(c *S3Config){
		`check endpoint: got ""; want a host, as s3.example.com:9000, without a scheme`:                                    func(c *S3Config) { c.Endpoint = "" },
		`check endpoint: got "http://s3"; want a host, as s3.example.com:9000, without a scheme`:                           func(c *S3Config) { c.Endpoint = "http://s3" },
		"check bucket: got none; want a bucket that exists":                                                                func(c *S3Config) { c.Bucket = "" },
		"check timeout: got 0s; want 1s or more":                                                                           func(c *S3Config) { c.Timeout = 0 },
		"check access_key and secret_key: got one of them; want both, or none for those of the environment or the machine": func(c *S3Config) { c.AccessKey = "key" },
	} {
		c := newDefaultS3()
		c.Endpoint, c.Bucket = "s3", "bucket"
		require.NoError(t, c.Validate())
		change(&c)
		assert.EqualError(t, c.Validate(), want)
	}
}
