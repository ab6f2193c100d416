// SPDX-License-Identifier: Apache-2.0

package sequenceextension

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	id := component.MustNewID("file_storage")
	for name, want := range map[string]*Config{
		"sequence": newDefaultConfig(),
		"sequence/all": {
			StorageID: &id, Wait: time.Second, StepLimit: 2 * time.Second, StreamLimit: 3 * time.Second, JobsMove: true, MaxStreams: 4, MaxJobs: 5, MaxOpen: 6, MaxBytes: 7 << 20,
		},
	} {
		sub, err := cm.Sub(name)
		require.NoError(t, err)
		cfg := NewFactory().CreateDefaultConfig()
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg))
		assert.Equal(t, want, cfg, name)
	}
}

func TestValidate_EveryFault_IsNamed(t *testing.T) {
	err := (&Config{}).Validate()
	for _, want := range []string{
		"check wait: got 0s; want more than 0", "check step_limit: got 0s; want more than 0", "check stream_limit: got 0s; want more than 0",
		"check max_streams: got 0; want at least 1", "check max_jobs: got 0; want at least 1", "check max_open: got 0; want at least 1",
		"check max_bytes: got 0; want at least 1048576",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestReadme_EveryKey_IsThere(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for f := range reflect.TypeFor[Config]().Fields() {
		if key := f.Tag.Get("mapstructure"); key != "" {
			assert.Contains(t, string(readme), "| `"+key+"` |")
		}
	}
}
