// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/otelcol"
)

//go:embed demo.yaml
var demoConfig string

// demoCollector is the collector that runs beside the job.
type demoCollector struct {
	col   *otelcol.Collector
	ended chan error // gets one value, when the collector has ended
}

// collectorPatience is how long the collector may take to start: a second where
// the machine is busy.
const collectorPatience = 30 * time.Second

// startDemoCollector returns when the collector's pipelines run.
func startDemoCollector(rings, level string, seen *tap) (*demoCollector, error) {
	set := settings([]string{"yaml:" + demoConfig, demoOverlay(rings, level)}, seen)
	set.DisableGracefulShutdown = true // signals are this command's
	col, err := otelcol.NewCollector(set)
	if err != nil {
		return nil, fmt.Errorf("create collector: %w", err)
	}
	d := &demoCollector{col: col, ended: make(chan error, 1)}
	go func() { d.ended <- col.Run(context.Background()) }()
	deadline := time.After(collectorPatience)
	for col.GetState() != otelcol.StateRunning {
		select {
		case err := <-d.ended:
			d.ended <- err
			return nil, fmt.Errorf("run collector: %w", orEnded(err))
		case <-deadline:
			return nil, fmt.Errorf("run collector: got no running pipelines after %v", collectorPatience)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return d, nil
}

func orEnded(err error) error {
	if err == nil {
		return fmt.Errorf("it ended by itself")
	}
	return err
}

// demoOverlay is the part of the configuration that this command decides. JSON is
// YAML; dollars would be expanded.
func demoOverlay(rings, level string) string {
	text, _ := json.Marshal(map[string]any{
		"receivers": map[string]any{"rank_events": map[string]any{"directory": rings, "level": level}},
	})
	return "yaml:" + strings.ReplaceAll(string(text), "$", "$$")
}

// stop ends the collector when what the ranks wrote last has been read and judged.
func (d *demoCollector) stop() error {
	d.col.Shutdown()
	if err := <-d.ended; err != nil {
		return fmt.Errorf("run collector: %w", err)
	}
	return nil
}
