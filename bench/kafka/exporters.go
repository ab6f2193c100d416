// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/kafkaexporter"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

	"github.com/lockstep-otel/lockstep/exporter/partitionedkafkaexporter"
)

// variant is an exporter with its settings.
type variant struct {
	name     string
	factory  exporter.Factory
	settings map[string]any
}

// common are settings of both: no queue, no retries, so that an error comes back, and time enough.
func common() map[string]any {
	return map[string]any{"sending_queue::enabled": false, "retry_on_failure::enabled": false, "timeout": "60s"}
}

// ours returns partitioned_kafka with further settings, KEY=VALUE separated by commas.
func ours(name, settings string) (variant, error) {
	v := variant{name: name, factory: partitionedkafkaexporter.NewFactory(), settings: common()}
	for setting := range strings.SplitSeq(settings, ",") {
		if setting == "" {
			continue
		}
		key, text, ok := strings.Cut(setting, "=")
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil || !ok {
			return v, fmt.Errorf("read -own %q: want KEY=VALUE, separated by commas", setting)
		}
		if key == "partition_by" {
			key = "traces::partition_by"
		}
		v.settings[key] = value
	}
	return v, nil
}

// stock returns contrib's kafka with the settings that serve these spans best: a step in one partition, every
// replica acknowledges, and zstd.
func stock(name string, more map[string]any) variant {
	v := variant{name: name, factory: kafkaexporter.NewFactory(), settings: common()}
	maps.Copy(v.settings, map[string]any{
		"protocol_version": "3.6.0", "partition_traces_by_id": true, "producer::required_acks": -1, "producer::compression": "zstd",
	})
	maps.Copy(v.settings, more)
	return v
}

// open makes and starts the exporter of a topic, as a collector does.
func (v *variant) open(ctx context.Context, address, topic string) (exporter.Traces, error) {
	settings := maps.Clone(v.settings)
	settings["brokers"], settings["traces::topic"] = []string{address}, topic
	cfg := v.factory.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(settings).Unmarshal(cfg); err != nil {
		return nil, fmt.Errorf("configure %s: %w", v.name, err)
	}
	if err := confmap.Validate(cfg); err != nil {
		return nil, fmt.Errorf("configure %s: %w", v.name, err)
	}
	e, err := v.factory.CreateTraces(ctx, exportertest.NewNopSettings(v.factory.Type()), cfg)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", v.name, err)
	}
	if err := e.Start(ctx, componenttest.NewNopHost()); err != nil {
		return nil, fmt.Errorf("start %s: %w", v.name, err)
	}
	return e, nil
}

// cost is what an exporter used.
type cost struct {
	cpu, wall time.Duration
	allocated uint64 // bytes
	spans     int    // for which it was
}

// send gives the requests to the exporter of a topic, one after another, and measures what passes until each was
// acknowledged. Neither the first request, which connects, nor reading a request from its bytes is measured.
func (v *variant) send(ctx context.Context, address, topic string, requests [][]byte) (c cost, err error) {
	e, err := v.open(ctx, address, topic)
	if err != nil {
		return c, err
	}
	var u ptrace.ProtoUnmarshaler
	for i, request := range requests {
		td, err := u.UnmarshalTraces(request)
		if err != nil {
			return c, fmt.Errorf("read request %d: %w", i, err)
		}
		spans := td.SpanCount() // an exporter may move them
		before := used()
		if err := e.ConsumeTraces(ctx, td); err != nil {
			return c, errors.Join(fmt.Errorf("send request %d with %s: %w", i, v.name, err), e.Shutdown(ctx))
		}
		if after := used(); i > 0 {
			c.cpu, c.wall, c.allocated = c.cpu+after.cpu-before.cpu, c.wall+after.wall-before.wall, c.allocated+after.allocated-before.allocated
			c.spans += spans
		}
	}
	return c, e.Shutdown(ctx)
}

var began = time.Now()

// used returns what this process has used so far, of all cores.
func used() (c cost) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for a wrong argument only
	bytes := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(bytes)
	return cost{
		cpu: time.Duration(u.Utime.Nano() + u.Stime.Nano()), wall: time.Since(began), allocated: bytes[0].Value.Uint64(),
	}
}
