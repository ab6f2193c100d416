// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func overlayOf(t *testing.T, config string, limitMiB int) (added map[string]map[string]any) {
	t.Helper()
	text, err := overlay(filepath.Join("../../distro/config", config), "localhost:1", limitMiB)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal([]byte(strings.TrimPrefix(text, "yaml:")), &added))
	return added
}

func TestOverlay_NoLimit_AddsPprofAlone(t *testing.T) {
	added := overlayOf(t, gateway, 0)
	assert.Equal(t, map[string]any{"pprof": map[string]any{"endpoint": "localhost:1"}}, added["extensions"])
	assert.Len(t, added, 2)
	assert.Contains(t, added["service"]["extensions"], "timeline", "those of the configuration stay")
	assert.Contains(t, added["service"]["extensions"], "pprof")
}

func TestOverlay_Limit_LowersComponentsOfTheConfiguration(t *testing.T) {
	added := overlayOf(t, standalone, 48)
	for _, id := range []string{"straggler", "straggler/live", "desync"} {
		assert.Equal(t, map[string]any{"max_memory_mib": 48}, added["connectors"][id], id)
	}
	assert.NotContains(t, added["connectors"], "epoch", "it is not in this configuration")
	assert.Contains(t, added["processors"], "clock_skew")
	assert.Contains(t, added["extensions"], "timeline")
	assert.Contains(t, added["extensions"], "pprof")
	assert.Contains(t, overlayOf(t, fleet, 48)["connectors"], "epoch")
}
