// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lockstep-otel/lockstep/exporter/reportexporter"
)

// reporting adds an exporter `report`, whose findings the tap gets, to a configuration that prints no
// findings on the terminal: beside the other exporters in each pipeline of logs.
type reporting struct {
	tap *tap
}

func (r reporting) factory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return r })
}

// Convert implements confmap.Converter. What it does not understand it leaves to the collector.
func (r reporting) Convert(_ context.Context, conf *confmap.Conf) error {
	exporters := exportersOf(conf)
	id := freeID(exporters)
	changed := map[string]any{}
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	for name, p := range pipelines {
		to := exportersOfLogs(name, p)
		if prints(to, exporters) {
			return nil
		}
		if exports(to, exporters) {
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

// exportersOf returns the configurations of the exporters by their ids, without those whose id is wrong.
func exportersOf(conf *confmap.Conf) map[component.ID]any {
	exporters := map[component.ID]any{}
	named, _ := conf.Get("exporters").(map[string]any)
	for name, config := range named {
		if id, ok := idOf(name); ok {
			exporters[id] = config
		}
	}
	return exporters
}

func idOf(name any) (id component.ID, ok bool) {
	text, ok := name.(string)
	return id, ok && id.UnmarshalText([]byte(text)) == nil
}

// freeID returns the id of a `report` that the configuration does not have.
func freeID(exporters map[component.ID]any) component.ID {
	reportType := reportexporter.NewFactory().Type()
	id := component.NewIDWithName(reportType, "at_end")
	for n := 2; ; n++ {
		if _, taken := exporters[id]; !taken {
			return id
		}
		id = component.NewIDWithName(reportType, fmt.Sprintf("at_end_%d", n))
	}
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
func exports(to []any, exporters map[component.ID]any) bool {
	return slices.ContainsFunc(to, func(name any) bool {
		id, ok := idOf(name)
		_, declared := exporters[id]
		return ok && declared
	})
}

// prints reports whether one of a pipeline's exporters is a `report` to stdout or stderr.
func prints(to []any, exporters map[component.ID]any) bool {
	return slices.ContainsFunc(to, func(name any) bool {
		id, ok := idOf(name)
		config, declared := exporters[id]
		if !ok || !declared || id.Type() != reportexporter.NewFactory().Type() {
			return false
		}
		settings, _ := config.(map[string]any)
		path, set := settings["path"]
		return !set || path == "stdout" || path == "stderr"
	})
}
