// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	sub, err := cm.Sub("queue_storage")
	require.NoError(t, err)
	cfg := NewFactory().CreateDefaultConfig()
	require.NoError(t, sub.Unmarshal(cfg))
	id := component.MustNewID("file_storage")
	assert.Equal(t, &Config{Storage: &id}, cfg)
	assert.NoError(t, confmap.Validate(cfg))
}

func TestValidate(t *testing.T) {
	assert.EqualError(t, newDefaultConfig().Validate(), "check storage: got none; want a storage extension such as file_storage")
}
