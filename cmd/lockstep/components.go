// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"

	"github.com/lockstep-otel/lockstep/connector/clocksconnector"
	"github.com/lockstep-otel/lockstep/connector/desyncconnector"
	"github.com/lockstep-otel/lockstep/connector/epochconnector"
	"github.com/lockstep-otel/lockstep/connector/findingsconnector"
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector"
	"github.com/lockstep-otel/lockstep/exporter/jsonlinesexporter"
	"github.com/lockstep-otel/lockstep/exporter/parquetexporter"
	"github.com/lockstep-otel/lockstep/exporter/reportexporter"
	"github.com/lockstep-otel/lockstep/extension/queuestorageextension"
	"github.com/lockstep-otel/lockstep/extension/sequenceextension"
	"github.com/lockstep-otel/lockstep/extension/timelineextension"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor"
	"github.com/lockstep-otel/lockstep/processor/sequenceprocessor"
	"github.com/lockstep-otel/lockstep/processor/stragglerprocessor"
	"github.com/lockstep-otel/lockstep/receiver/checkpointreceiver"
	"github.com/lockstep-otel/lockstep/receiver/epochcommitreceiver"
	"github.com/lockstep-otel/lockstep/receiver/fleetversionreceiver"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver"
	"github.com/lockstep-otel/lockstep/receiver/ncclinspectorreceiver"
	"github.com/lockstep-otel/lockstep/receiver/ncclrasreceiver"
	"github.com/lockstep-otel/lockstep/receiver/owdprobereceiver"
	"github.com/lockstep-otel/lockstep/receiver/rankeventsreceiver"
	"github.com/lockstep-otel/lockstep/receiver/torchtracereceiver"
)

// components are those of `lockstep run` and `lockstep demo`: ours, and of the collector's own only
// what a replay and a forwarder need, since a first run compiles them all.
func components(t *tap) (f otelcol.Factories, err error) {
	f.Telemetry = otelconftelemetry.NewFactory()
	if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](
		t.receiver(rankeventsreceiver.NewFactory()),
		t.receiver(flightrecorderreceiver.NewFactory()),
		t.receiver(ncclinspectorreceiver.NewFactory()),
		t.receiver(torchtracereceiver.NewFactory()),
		t.receiver(owdprobereceiver.NewFactory()),
		t.receiver(ncclrasreceiver.NewFactory()),
		t.receiver(checkpointreceiver.NewFactory()),
		t.receiver(epochcommitreceiver.NewFactory()),
		t.receiver(fleetversionreceiver.NewFactory()),
		t.receiver(otlpreceiver.NewFactory()),
	); err != nil {
		return f, err
	}
	if f.Processors, err = otelcol.MakeFactoryMap[processor.Factory](
		clockskewprocessor.NewFactory(),
		stragglerprocessor.NewFactory(),
		sequenceprocessor.NewFactory(),
	); err != nil {
		return f, err
	}
	if f.Connectors, err = otelcol.MakeFactoryMap[connector.Factory](
		clocksconnector.NewFactory(),
		stragglerconnector.NewFactory(),
		desyncconnector.NewFactory(),
		epochconnector.NewFactory(),
		findingsconnector.NewFactory(),
	); err != nil {
		return f, err
	}
	if f.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](
		timelineextension.NewFactory(),
		queuestorageextension.NewFactory(),
		sequenceextension.NewFactory(),
	); err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](
		debugexporter.NewFactory(),
		otlpexporter.NewFactory(),
		jsonlinesexporter.NewFactory(),
		parquetexporter.NewFactory(),
		reportexporter.NewFactory(reportexporter.WithSink(t.sink)),
	)
	return f, err
}
