// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/extension/queuestorageextension/internal/metadatatest"
)

// database makes a file as file_storage does.
func database(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("default"))
		if err != nil {
			return err
		}
		return b.Put([]byte("0"), make([]byte, 50_000))
	}))
	require.NoError(t, db.Close())
}

// started starts the extension with a directory of storage files.
func started(t *testing.T, dir string, telemetry *componenttest.Telemetry) (*observer.ObservedLogs, error) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	set := metadatatest.NewSettings(telemetry)
	set.Logger = zap.New(core)
	extension, err := NewFactory().Create(t.Context(), set, &Config{Storage: &diskID, Directory: dir})
	require.NoError(t, err)
	err = extension.Start(t.Context(), host{diskID: newDisk(nil, -1)})
	require.NoError(t, extension.Shutdown(t.Context()))
	return logs, err
}

// Each damaged file is set aside, named and counted. Others stay as they are.
func TestStart_DamagedFiles_AreSetAside(t *testing.T) {
	t.Parallel()
	dir, telemetry := t.TempDir(), componenttest.NewTelemetry()
	for name, spoil := range map[string]func(b []byte) []byte{
		"exporter_otlp__traces":        func(b []byte) []byte { clear(b[:3*os.Getpagesize()]); return b },
		"exporter_otlp__logs":          func(b []byte) []byte { return b[:len(b)/8] },
		"connector_findings_":          func([]byte) []byte { return nil },
		"receiver_rank_events_":        func(b []byte) []byte { return b },
		"exporter_otlp__logs.x.backup": func([]byte) []byte { return []byte("left as it is") },
		"tempdb123":                    func([]byte) []byte { return nil },
		"findings.jsonl":               func([]byte) []byte { return []byte("{}") },
	} {
		path := filepath.Join(dir, name)
		database(t, path)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, spoil(content), 0o600))
	}
	logs, err := started(t, dir, telemetry)
	require.NoError(t, err)
	var named []string
	for _, e := range logs.FilterLevelExact(zapcore.ErrorLevel).All() {
		named = append(named, filepath.Base(e.ContextMap()["file"].(string)))
		assert.FileExists(t, e.ContextMap()["backup"].(string))
	}
	assert.Equal(t, []string{"connector_findings_", "exporter_otlp__logs", "exporter_otlp__traces"}, named)
	for _, name := range named {
		assert.NoFileExists(t, filepath.Join(dir, name))
	}
	for _, name := range []string{"receiver_rank_events_", "exporter_otlp__logs.x.backup", "tempdb123", "findings.jsonl"} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	metadatatest.AssertEqualExtensionQueueStorageFilesDamaged(t, telemetry, []metricdata.DataPoint[int64]{{Value: 3}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

// A file that a process has open is left to that process, whatever it looks like in the middle of a transaction.
func TestStart_FileInUse_IsLeftAlone(t *testing.T) {
	t.Parallel()
	dir, telemetry := t.TempDir(), componenttest.NewTelemetry()
	path := filepath.Join(dir, "exporter_otlp__traces")
	database(t, path)
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	clear(content[:2*os.Getpagesize()])
	require.NoError(t, os.WriteFile(path, content, 0o600))
	logs, err := started(t, dir, telemetry)
	require.NoError(t, err)
	assert.Zero(t, logs.Len())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

func TestStart_NoDirectory_IsNoError(t *testing.T) {
	t.Parallel()
	telemetry := componenttest.NewTelemetry()
	_, err := started(t, filepath.Join(t.TempDir(), "later"), telemetry)
	require.NoError(t, err)
	require.NoError(t, telemetry.Shutdown(t.Context()))
}
