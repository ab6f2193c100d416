// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	queue, retry := newDefaultConfig().Queue, defaultRetry
	queue.Get().QueueSize = 1 << 20
	retry.MaxElapsedTime = time.Minute
	for name, want := range map[string]*Config{
		"report": newDefaultConfig(),
		"report/file": {
			Path: "/var/log/lockstep/findings.txt", Format: "line", Width: 100, Color: "always", MinSeverity: "warn",
			Updates: "none", UpdateInterval: time.Minute, Summary: true, Queue: queue, Retry: retry,
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

func TestValidate_EachField_IsNamed(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"check path: got none; want stdout, stderr, or a file in a directory that exists": func(c *Config) { c.Path = "" },
		"check width: got 79; want 80 to 120, or 0":                                       func(c *Config) { c.Width = 79 },
		"check width: got 121; want 80 to 120, or 0":                                      func(c *Config) { c.Width = 121 },
		"check update_interval: got -1s; want 0s or more":                                 func(c *Config) { c.UpdateInterval = -time.Second },
		`check format: got "json"; want block, line`:                                      func(c *Config) { c.Format = "json" },
		`check color: got "yes"; want auto, always, never`:                                func(c *Config) { c.Color = "yes" },
		`check min_severity: got "debug"; want info, warn, error`:                         func(c *Config) { c.MinSeverity = "debug" },
		`check updates: got "all"; want changed, none`:                                    func(c *Config) { c.Updates = "all" },
		"check sending_queue::num_consumers: got 2; want 1, since findings are written in their order": func(c *Config) {
			c.Queue.Get().NumConsumers = 2
		},
	} {
		c := newDefaultConfig()
		change(c)
		assert.EqualError(t, c.Validate(), want)
	}
}

func TestMinSeverity_Names_AreThoseOfTheModel(t *testing.T) {
	for name, want := range map[string]model.Severity{"info": model.SeverityInfo, "warn": model.SeverityWarn, "error": model.SeverityError} {
		c := Config{MinSeverity: name}
		assert.Equal(t, want, c.minSeverity())
	}
}
