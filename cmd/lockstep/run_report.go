// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lockstep-otel/lockstep/exporter/reportexporter"
)

// reporting adds an exporter `report`, whose findings the tap gets, to a configuration that has none:
// beside the other exporters in each pipeline of logs.
type reporting struct {
	tap *tap
}

func (r reporting) factory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return r })
}

// Convert implements confmap.Converter. What it does not understand it leaves to the collector.
func (r reporting) Convert(_ context.Context, conf *confmap.Conf) error {
	reportType := reportexporter.NewFactory().Type()
	exporters, _ := conf.Get("exporters").(map[string]any)
	for name := range exporters {
		if id := (component.ID{}); id.UnmarshalText([]byte(name)) == nil && id.Type() == reportType {
			return nil
		}
	}
	id := component.NewIDWithName(reportType, "at_end")
	changed := map[string]any{}
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	for name, p := range pipelines {
		if to := exportersOfLogs(name, p); exports(to, exporters) {
			changed[name] = map[string]any{"exporters": append(to, id.String())}
		}
	}
	if len(changed) == 0 {
		return nil
	}
	r.tap.shown = id
	return conf.Merge(confmap.NewFromStringMap(map[string]any{
		"exporters": map[string]any{id.String(): map[string]any{}}, "service": map[string]any{"pipelines": changed},
	}))
}

// exportersOfLogs returns where a pipeline sends logs, a copy; nil of a pipeline of another signal.
func exportersOfLogs(name string, config any) []any {
	id := pipeline.ID{}
	p, _ := config.(map[string]any)
	to, _ := p["exporters"].([]any)
	if id.UnmarshalText([]byte(name)) != nil || id.Signal() != pipeline.SignalLogs {
		return nil
	}
	return append([]any(nil), to...)
}

// exports reports whether one of a pipeline's exporters is no connector.
func exports(to []any, exporters map[string]any) bool {
	for _, e := range to {
		if name, ok := e.(string); ok {
			if _, ok := exporters[name]; ok {
				return true
			}
		}
	}
	return false
}
