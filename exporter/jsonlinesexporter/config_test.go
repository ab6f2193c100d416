// SPDX-License-Identifier: Apache-2.0

package jsonlinesexporter

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for name, want := range map[string]*Config{
		"json_lines":     {Path: "findings.jsonl"},
		"json_lines/all": {Path: "/var/lib/lockstep/spans.jsonl", Rotation: &RotationConfig{MaxMegabytes: 100, MaxBackups: 3}},
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
	for want, c := range map[string]*Config{
		"check path: got none; want a file, in a directory that exists": {},
		"check rotation::max_megabytes: got 0; want 1 to 1048576\n" +
			"check rotation::max_backups: got 0; want 1 to 1000": {Path: "f", Rotation: &RotationConfig{}},
		"check rotation::max_megabytes: got 1048577; want 1 to 1048576\n" +
			"check rotation::max_backups: got 1001; want 1 to 1000": {Path: "f", Rotation: &RotationConfig{MaxMegabytes: 1<<20 + 1, MaxBackups: 1001}},
	} {
		assert.EqualError(t, c.Validate(), want)
	}
}
