// SPDX-License-Identifier: Apache-2.0

package fleetversionreceiver

import (
	"os"
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
	for name, want := range map[string]*Config{
		"fleet_version": newDefaultConfig(),
		"fleet_version/all": {
			PollInterval: 10 * time.Second, Heartbeat: 2 * time.Minute, Timeout: 5 * time.Second, RootPath: "/hostfs",
			LibraryPaths: []string{"opt/lib"}, NvidiaSMI: "/usr/local/bin/nvidia-smi", NCCLRAS: "localhost:28028",
			ContainerImage: "llama:7", ContainerImageFile: "/etc/image", Node: "node7", HostID: "id7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sub, err := cm.Sub(name)
			require.NoError(t, err)
			cfg := NewFactory().CreateDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			assert.Equal(t, want, cfg)
			assert.NoError(t, confmap.Validate(cfg))
		})
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"check poll_interval: got 10ms; want at least 1s, with a unit": func(c *Config) { c.PollInterval = 10 * time.Millisecond },
		"check heartbeat: got 5s; want at least poll_interval, 1m0s":   func(c *Config) { c.Heartbeat = 5 * time.Second },
		"check timeout: got 0s; want at least 1s, with a unit":         func(c *Config) { c.Timeout = 0 },
		`check root_path: got "hostfs"; want a path from the root`:     func(c *Config) { c.RootPath = "hostfs" },
		`check nccl_ras: got ":28028"; want host:port`:                 func(c *Config) { c.NCCLRAS = ":28028" },
		`check nccl_ras: got "localhost:0"; want host:port`:            func(c *Config) { c.NCCLRAS = "localhost:0" },
		"check library_paths: got 65; want at most 64":                 func(c *Config) { c.LibraryPaths = make([]string, 65) },
	} {
		cfg := newDefaultConfig()
		require.NoError(t, cfg.Validate())
		change(cfg)
		require.EqualError(t, cfg.Validate(), want)
	}
}

func TestConfig_LibraryPaths_HaveWhereDriversLie(t *testing.T) {
	for _, folder := range []string{"usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/local/nvidia/lib64"} {
		c := newDefaultConfig()
		c.RootPath = t.TempDir()
		dir := filepath.Join(c.RootPath, folder)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.Symlink("libnvidia-ml.so.580.95.05", filepath.Join(dir, "libnvidia-ml.so.1")))
		files := c.files()
		versions := files.Read().Versions
		require.Len(t, versions, 1, folder)
		assert.Equal(t, "580.95.05", versions[0].Version)
	}
}
