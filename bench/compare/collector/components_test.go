// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"

	"github.com/lockstep-otel/lockstep/connector/clocksconnector"
	"github.com/lockstep-otel/lockstep/connector/desyncconnector"
	"github.com/lockstep-otel/lockstep/connector/epochconnector"
	"github.com/lockstep-otel/lockstep/connector/findingsconnector"
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector"
	"github.com/lockstep-otel/lockstep/extension/timelineextension"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor"
	"github.com/lockstep-otel/lockstep/processor/stragglerprocessor"
	"github.com/lockstep-otel/lockstep/receiver/checkpointreceiver"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver"
	"github.com/lockstep-otel/lockstep/receiver/ncclinspectorreceiver"
	"github.com/lockstep-otel/lockstep/receiver/torchtracereceiver"
)

// factories returns the components that need no network, and those of this package.
func factories() (f otelcol.Factories, err error) {
	f.Telemetry = otelconftelemetry.NewFactory()
	var errs [5]error
	f.Receivers, errs[0] = otelcol.MakeFactoryMap[receiver.Factory](
		newFeed(),
		checkpointreceiver.NewFactory(),
		flightrecorderreceiver.NewFactory(),
		ncclinspectorreceiver.NewFactory(),
		torchtracereceiver.NewFactory(),
	)
	f.Processors, errs[1] = otelcol.MakeFactoryMap[processor.Factory](
		clockskewprocessor.NewFactory(),
		stragglerprocessor.NewFactory(),
	)
	f.Connectors, errs[2] = otelcol.MakeFactoryMap[connector.Factory](
		clocksconnector.NewFactory(),
		desyncconnector.NewFactory(),
		epochconnector.NewFactory(),
		findingsconnector.NewFactory(),
		stragglerconnector.NewFactory(),
	)
	f.Extensions, errs[3] = otelcol.MakeFactoryMap[extension.Factory](
		newMemory(),
		timelineextension.NewFactory(),
	)
	f.Exporters, errs[4] = otelcol.MakeFactoryMap[exporter.Factory](newRecord())
	return f, errors.Join(errs[:]...)
}
