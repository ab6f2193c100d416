// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/otelcol"
)

// The environment of a run. A configuration refers to both as ${env:...}.
const (
	envCase = "LOCKSTEP_COMPARE_CASE" // folder with config.yaml and case.json
	envOut  = "LOCKSTEP_COMPARE_OUT"  // folder for what is recorded
)

// plan is case.json.
type plan struct {
	Start   int64     `json:"start_unix_nano"` // when the collector starts, in fake time
	Seconds []float64 `json:"seconds"`         // how long each life of the collector takes
}

// TestCase runs the case that the environment names.
func TestCase(t *testing.T) {
	dir := os.Getenv(envCase)
	if dir == "" {
		t.Skipf("%s names no folder: bench/compare sets it", envCase)
	}
	runCase(t, dir)
}

func runCase(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "case.json"))
	require.NoError(t, err)
	var p plan
	require.NoError(t, json.Unmarshal(text, &p))
	// The runtime makes what serves signals at the first call. Made in the bubble, it would
	// end the program.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(0, p.Start)))
		begin = time.Now()
		for _, seconds := range p.Seconds {
			require.NoError(t, life(filepath.Join(dir, "config.yaml"), time.Duration(seconds*1e9)))
		}
	})
}

// life runs a collector for so long.
func life(config string, d time.Duration) error {
	col, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "compare", Description: "Compares revisions", Version: "0"},
		Factories: factories, DisableGracefulShutdown: true, SkipSettingGRPCLogger: true,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{config}, DefaultScheme: "file",
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory()},
		}},
	})
	if err != nil {
		return fmt.Errorf("create collector: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- col.Run(context.Background()) }()
	select {
	case err = <-ended:
		return errors.Join(errors.New("collector ended by itself"), err)
	case <-time.After(d):
	}
	col.Shutdown()
	return <-ended
}

func TestRunCase_FedLogs_AreRecordedAtTheirFakeTime(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(envOut, dir)
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("case.json", `{"start_unix_nano": 1793491200000000000, "seconds": [3600, 3600]}`)
	line := `{"after_seconds": %d, "signal": "logs", "data": {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "%s"}}]}]}]}}` + "\n"
	write("feed.jsonl", fmt.Sprintf(line, 90, "first")+fmt.Sprintf(line, 5400, "in the second life"))
	write("config.yaml", `
receivers: {feed: {path: "`+dir+`/feed.jsonl"}}
exporters: {record: {path: "${env:LOCKSTEP_COMPARE_OUT}/logs.jsonl"}}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines: {logs: {receivers: [feed], exporters: [record]}}
`)

	runCase(t, dir)

	got, err := os.ReadFile(filepath.Join(dir, "logs.jsonl"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], `{"after_seconds":90,`)
	assert.Contains(t, lines[0], `"first"`)
	assert.Contains(t, lines[1], `{"after_seconds":5400,`)
}
