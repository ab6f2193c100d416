// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/lockstep-otel/lockstep/connector/desyncconnector"
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector"
	"github.com/lockstep-otel/lockstep/extension/timelineextension"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor"
)

// settings are the configurations of the parts from the gateway's file, without what needs a network
// or a disk: the storage of open findings and the page of the timeline.
type settings struct{ skew, straggler, desync, timeline component.Config }

// readSettings reads the configuration of a gateway. It fails where the traces pipeline is not the
// measured one.
func readSettings(path string) (*settings, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var file map[string]any
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	conf := confmap.NewFromStringMap(file)
	if err := checkPipeline(conf); err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	s := &settings{
		skew:      clockskewprocessor.NewFactory().CreateDefaultConfig(),
		straggler: stragglerconnector.NewFactory().CreateDefaultConfig(),
		desync:    desyncconnector.NewFactory().CreateDefaultConfig(),
		timeline:  timelineextension.NewFactory().CreateDefaultConfig(),
	}
	err = errors.Join(
		configure(conf, "processors::clock_skew", s.skew),
		configure(conf, "connectors::straggler", s.straggler),
		configure(conf, "connectors::desync", s.desync),
		configure(conf, "extensions::timeline", s.timeline),
	)
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	return s, nil
}

// checkPipeline fails where the pipeline of traces is another than the one that is measured.
func checkPipeline(conf *confmap.Conf) error {
	for key, want := range map[string][]any{
		"processors": {"memory_limiter", "sequence", "clock_skew"},
		"exporters":  {"straggler", "desync"},
	} {
		if got, _ := conf.Get("service::pipelines::traces::" + key).([]any); !slices.Equal(got, want) {
			return fmt.Errorf("check pipeline traces: got %s %v; want %v, as this benchmark measures them", key, got, want)
		}
	}
	return nil
}

// configure reads a part's section into its default configuration.
func configure(conf *confmap.Conf, key string, cfg component.Config) error {
	section, _ := conf.Get(key).(map[string]any)
	sub := confmap.NewFromStringMap(section)
	sub.Delete("storage")
	sub.Delete("sequence") // no span has a number
	if sub.IsSet("endpoint") {
		if err := sub.Merge(confmap.NewFromStringMap(map[string]any{"endpoint": ""})); err != nil {
			return err
		}
	}
	if err := sub.Unmarshal(cfg); err != nil {
		return fmt.Errorf("configure %s: %w", key, err)
	}
	return confmap.Validate(cfg)
}
