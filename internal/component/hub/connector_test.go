// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
)

// An engine that cannot work is refused when its connector is made, not when data come.
func TestConnectors_EngineCannotWork_Refused(t *testing.T) {
	type config struct{ x int } //nolint:unused // configurations differ by their pointers
	failed := errors.New("no telemetry")
	for want, engine := range map[string]func() (*Engine, error){
		"no telemetry":                        func() (*Engine, error) { return nil, failed },
		"got no engine; want one":             func() (*Engine, error) { return nil, nil }, //nolint:nilnil // it is what is refused
		"got an engine that reads no traces;": func() (*Engine, error) { return &Engine{Logs: func(plog.Logs) Input { return Input{} }}, nil },
	} {
		c := NewConnectors(func(*config, connector.Settings) (*Engine, error) { return engine() })
		set := connectortest.NewNopSettings(component.MustNewType("toy"))
		_, err := c.TracesToLogs(t.Context(), set, &config{}, consumertest.NewNop())
		require.ErrorContains(t, err, want)
		assert.Empty(t, c.hubs.entries)
	}
}

// Settings that are left out have defaults.
func TestConnectors_NoSettings_Works(t *testing.T) {
	type config struct{ x int } //nolint:unused // configurations differ by their pointers
	c := NewConnectors(func(*config, connector.Settings) (*Engine, error) {
		return &Engine{Logs: func(plog.Logs) Input { return Input{} }}, nil
	})
	set := connectortest.NewNopSettings(component.MustNewType("toy"))
	toLogs, err := c.LogsToLogs(t.Context(), set, &config{}, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, toLogs.Start(t.Context(), nil))
	require.NoError(t, toLogs.Shutdown(t.Context()))
}
