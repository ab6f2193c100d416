// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/receiver/checkpointreceiver"
	"github.com/lockstep-otel/lockstep/receiver/fleetversionreceiver"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver"
	"github.com/lockstep-otel/lockstep/receiver/ncclinspectorreceiver"
	"github.com/lockstep-otel/lockstep/receiver/rankeventsreceiver"
	"github.com/lockstep-otel/lockstep/receiver/torchtracereceiver"
)

const poll = 10 * time.Millisecond

// readers are the receivers of directories, each with a configuration that names one.
var readers = map[string]struct {
	factory   receiver.Factory
	configure func(cfg component.Config, dir string)
}{
	"rank_events": {rankeventsreceiver.NewFactory(), func(cfg component.Config, dir string) {
		c := cfg.(*rankeventsreceiver.Config)
		c.Directory, c.PollInterval = dir, poll
	}},
	"torch_trace": {torchtracereceiver.NewFactory(), func(cfg component.Config, dir string) {
		c := cfg.(*torchtracereceiver.Config)
		c.Include, c.Mode, c.PollInterval = []string{dir}, "watch", poll
	}},
	"flight_recorder": {flightrecorderreceiver.NewFactory(), func(cfg component.Config, dir string) {
		c := cfg.(*flightrecorderreceiver.Config)
		c.Include, c.PollInterval = []string{filepath.Join(dir, "*.pickle")}, poll
	}},
	"nccl_inspector": {ncclinspectorreceiver.NewFactory(), func(cfg component.Config, dir string) {
		c := cfg.(*ncclinspectorreceiver.Config)
		c.Include, c.PollInterval = []string{dir}, poll
	}},
	"checkpoint": {checkpointreceiver.NewFactory(), func(cfg component.Config, dir string) {
		c := cfg.(*checkpointreceiver.Config)
		c.Roots, c.PollInterval = []checkpointreceiver.RootConfig{{Path: dir, JobID: "job"}}, poll
	}},
	"fleet_version": {fleetversionreceiver.NewFactory(), func(cfg component.Config, dir string) {
		c := cfg.(*fleetversionreceiver.Config)
		c.RootPath, c.PollInterval, c.NvidiaSMI, c.FabricManager = dir, poll, "", ""
	}},
}

// host forwards the events that components report about themselves.
type host struct{ events chan *componentstatus.Event }

func (host) GetExtensions() map[component.ID]component.Component { return nil }
func (h host) Report(e *componentstatus.Event)                   { h.events <- e }

func (h host) next(t *testing.T) *componentstatus.Event {
	t.Helper()
	select {
	case e := <-h.events:
		return e
	case <-time.After(30 * time.Second):
		t.Fatal("the receiver reports nothing")
		return nil
	}
}

func TestReceivers_MissingDirectory_IsReported(t *testing.T) {
	for name, of := range readers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "later")
			h := host{make(chan *componentstatus.Event, 16)}
			cfg := of.factory.CreateDefaultConfig()
			of.configure(cfg, dir)
			r := create(t, of.factory, cfg)
			require.NoError(t, r.Start(t.Context(), h))
			defer func() { assert.NoError(t, r.Shutdown(context.Background())) }()
			missing := func() {
				t.Helper()
				e := h.next(t)
				require.Equal(t, componentstatus.StatusRecoverableError, e.Status())
				require.EqualError(t, e.Err(), "read "+dir+": no such file or directory; create it, or remove it from the configuration")
			}
			missing()
			require.NoError(t, os.Mkdir(dir, 0o700))
			e := h.next(t)
			require.Equal(t, componentstatus.StatusOK, e.Status(), "%v", e.Err())
			require.NoError(t, os.Remove(dir))
			missing()
		})
	}
}

// Each directory that is missing is named, by the status and by one warning.
func TestReceivers_SeveralMissingDirectories_AreAllNamed(t *testing.T) {
	for name, configure := range map[string]func(cfg component.Config, dirs []string){
		"torch_trace": func(cfg component.Config, dirs []string) {
			c := cfg.(*torchtracereceiver.Config)
			c.Include, c.Mode, c.PollInterval = dirs, "watch", poll
		},
		"flight_recorder": func(cfg component.Config, dirs []string) {
			c := cfg.(*flightrecorderreceiver.Config)
			c.Include, c.PollInterval = dirs, poll
		},
		"nccl_inspector": func(cfg component.Config, dirs []string) {
			c := cfg.(*ncclinspectorreceiver.Config)
			c.Include, c.PollInterval = dirs, poll
		},
		"checkpoint": func(cfg component.Config, dirs []string) {
			c := cfg.(*checkpointreceiver.Config)
			c.PollInterval = poll
			for i, dir := range dirs {
				c.Roots = append(c.Roots, checkpointreceiver.RootConfig{Path: dir, JobID: strconv.Itoa(i)})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dirs := []string{filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")}
			h := host{make(chan *componentstatus.Event, 16)}
			f := readers[name].factory
			cfg := f.CreateDefaultConfig()
			configure(cfg, dirs)
			core, logs := observer.New(zapcore.WarnLevel)
			r := createWith(t, f, cfg, zap.New(core))
			require.NoError(t, r.Start(t.Context(), h))
			named := func(text string) bool { return strings.Contains(text, dirs[0]) && strings.Contains(text, dirs[1]) }
			for e := h.next(t); !named(e.Err().Error()); e = h.next(t) { // roots are looked at one by one
				require.Equal(t, componentstatus.StatusRecoverableError, e.Status())
			}
			require.Eventually(t, func() bool { return warnings(logs, dirs[0]) > 0 && warnings(logs, dirs[1]) > 0 }, 10*time.Second, time.Millisecond)
			require.NoError(t, r.Shutdown(context.Background()))
			for _, dir := range dirs {
				assert.Equal(t, 1, warnings(logs, dir), dir)
			}
		})
	}
}

// warnings returns how many warnings say that a directory is missing.
func warnings(logs *observer.ObservedLogs, dir string) (n int) {
	for _, e := range logs.All() {
		for _, v := range e.ContextMap() {
			if text, ok := v.(string); ok && strings.Contains(text, dir+": no such file or directory") {
				n++
			}
		}
	}
	return n
}

func create(t *testing.T, f receiver.Factory, cfg component.Config) (r component.Component) {
	t.Helper()
	return createWith(t, f, cfg, zap.NewNop())
}

func createWith(t *testing.T, f receiver.Factory, cfg component.Config, log *zap.Logger) (r component.Component) {
	t.Helper()
	set := receivertest.NewNopSettings(f.Type())
	set.Logger = log
	var err error
	if f.LogsStability() != component.StabilityLevelUndefined {
		r, err = f.CreateLogs(t.Context(), set, cfg, consumertest.NewNop())
	} else {
		r, err = f.CreateTraces(t.Context(), set, cfg, consumertest.NewNop())
	}
	require.NoError(t, err)
	return r
}
