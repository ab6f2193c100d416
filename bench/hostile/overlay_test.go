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

func overlayOf(t *testing.T, config string, lower limits) (added map[string]map[string]any) {
	t.Helper()
	text, err := overlay(filepath.Join("..", "..", "distro", "config", config), "localhost:1", lower)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal([]byte(strings.TrimPrefix(text, "yaml:")), &added))
	return added
}

func TestOverlay_NoLimit_AddsPprofAlone(t *testing.T) {
	added := overlayOf(t, gateway, nil)
	assert.Equal(t, map[string]any{"pprof": map[string]any{"endpoint": "localhost:1"}}, added["extensions"])
	assert.Len(t, added, 2)
	assert.Contains(t, added["service"]["extensions"], "timeline", "those of the configuration stay")
	assert.Contains(t, added["service"]["extensions"], "pprof")
}

func TestOverlay_Limit_LowersComponentsOfTheConfiguration(t *testing.T) {
	added := overlayOf(t, standalone, lowered(48))
	for _, id := range []string{"straggler", "straggler/live", "desync"} {
		got, _ := added["connectors"][id].(map[string]any)
		assert.Equal(t, 48, got["max_memory_mib"], id)
		assert.NotContains(t, got, "max_jobs", id)
	}
	assert.NotContains(t, added["connectors"], "epoch", "it is not in this configuration")
	assert.NotContains(t, added["connectors"], "forward/detail", "it has no limit to lower")
	assert.Contains(t, added["processors"], "clock_skew")
	assert.Contains(t, added["extensions"], "timeline")
	assert.Contains(t, added["extensions"], "pprof")
	assert.Contains(t, overlayOf(t, fleet, lowered(48))["connectors"], "epoch")
}

func TestOverlay_Soak_FewJobs(t *testing.T) {
	added := overlayOf(t, standalone, loweredForSoak(48))
	got, _ := added["connectors"]["straggler/live"].(map[string]any)
	assert.Equal(t, 24, got["max_jobs"])
	assert.Equal(t, 48, got["max_memory_mib"])
}
