// SPDX-License-Identifier: Apache-2.0

package fleetversionreceiver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/otelmap/versionmap"
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
	"github.com/lockstep-otel/lockstep/internal/testdata"
	"github.com/lockstep-otel/lockstep/receiver/fleetversionreceiver/internal/metadatatest"
)

// bench is a receiver of a made-up node, with what it tells and to whom.
type bench struct {
	*looker
	dir  string
	sink *consumertest.LogsSink
	tel  *componenttest.Telemetry
	said *observer.ObservedLogs
	now  time.Time
}

const answer = `<nvidia_smi_log><driver_version>550.90.07</driver_version><cuda_version>12.4</cuda_version>` +
	`<gpu><uuid>GPU-1</uuid><product_name>H100</product_name><vbios_version>96.1</vbios_version></gpu>` +
	`<gpu><uuid>GPU-2</uuid><product_name>H100</product_name><vbios_version>96.2</vbios_version></gpu></nvidia_smi_log>`

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testdata.Program(t, path, content)
}

func newBench(t *testing.T, next consumer.Logs, change func(*Config)) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), sink: &consumertest.LogsSink{}, tel: componenttest.NewTelemetry(), now: time.Unix(1_760_000_000, 0)}
	write(t, b.dir, "proc/sys/kernel/osrelease", "5.15.0-107-generic\n")
	write(t, b.dir, "sys/module/nvidia/version", "550.90.07\n")
	write(t, b.dir, "bin/nvidia-smi", "#!/bin/sh\necho '"+answer+"'\n")
	cfg := newDefaultConfig()
	cfg.RootPath, cfg.Node, cfg.HostID = b.dir, "node7", "id7"
	cfg.NvidiaSMI, cfg.FabricManager = filepath.Join(b.dir, "bin", "nvidia-smi"), filepath.Join(b.dir, "bin", "nv-fabricmanager")
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	set := metadatatest.NewSettings(b.tel)
	core, logs := observer.New(zap.DebugLevel)
	set.Logger, b.said = zap.New(core), logs
	if next == nil {
		next = b.sink
	}
	var err error
	b.looker, err = newLooker(set, cfg, next)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, b.Shutdown(context.Background()))
		assert.NoError(t, b.tel.Shutdown(context.Background()))
	})
	return b
}

// looks looks once, some time later, and returns what is told.
func (b *bench) looks(t *testing.T) []string {
	t.Helper()
	b.now = b.now.Add(b.cfg.PollInterval)
	b.sink.Reset()
	b.look(b.now)
	return told(t, b.sink)
}

// told are the bodies of what was told.
func told(t *testing.T, sink *consumertest.LogsSink) (out []string) {
	t.Helper()
	for _, ld := range sink.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			assert.Equal(t, map[string]any{"host.name": "node7", "host.id": "id7"}, rl.Resource().Attributes().AsRaw())
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				_, _, err := versionmap.LogToVersion(rl.Resource(), lr)
				require.NoError(t, err)
				out = append(out, lr.Body().Str())
			}
		}
	}
	return out
}

func (b *bench) counter(name, key, value string) (sum int64) {
	m, err := b.tel.GetMetric("otelcol_receiver_fleet_version_" + name)
	if err != nil {
		return 0 // never added to
	}
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		if v, _ := dp.Attributes.Value(attribute.Key(key)); key == "" || v.AsString() == value {
			sum += dp.Value
		}
	}
	return sum
}

var all = []string{
	"cuda 12.4", "gpu_vbios 96.1 of GPU-1 (H100)", "gpu_vbios 96.2 of GPU-2 (H100)", "kernel 5.15.0-107-generic",
	"nvidia_kernel_driver 550.90.07", "nvidia_user_driver 550.90.07",
}

// All is told first and with each heartbeat, and between them what changed.
func TestVersionsAreTold(t *testing.T) {
	b := newBench(t, nil, nil)
	assert.Equal(t, all, b.looks(t))
	assert.Empty(t, b.looks(t))
	write(t, b.dir, "proc/sys/kernel/osrelease", "5.15.0-113-generic\n") // as after a live patch
	assert.Equal(t, []string{"kernel 5.15.0-113-generic"}, b.looks(t))
	assert.Empty(t, b.looks(t))
	assert.Empty(t, b.looks(t))
	assert.Len(t, b.looks(t), len(all), "a heartbeat")
	assert.EqualValues(t, 3, b.counter("looks", "outcome", lookTold))
	assert.EqualValues(t, 3, b.counter("looks", "outcome", lookNothingNew))
	assert.EqualValues(t, 2*len(all)+1, b.counter("facts_emitted", "", ""))
	assert.Zero(t, b.counter("faults", "", ""))
}

// With another driver, programs are asked at once; what does not fit together is told.
func TestAnotherDriver(t *testing.T) {
	b := newBench(t, nil, nil)
	b.looks(t)
	write(t, b.dir, "sys/module/nvidia/version", "580.126.09\n")
	require.NoError(t, os.MkdirAll(filepath.Join(b.dir, "usr", "lib64"), 0o755))
	require.NoError(t, os.Symlink("libnvidia-ml.so.550.90.07", filepath.Join(b.dir, "usr", "lib64", "libnvidia-ml.so.1")))
	said := b.looks(t)
	assert.Contains(t, said, "nvidia_kernel_driver 580.126.09")
	assert.Contains(t, said, "cuda 12.4")
	assert.Contains(t, said[len(said)-1], "the kernel has NVIDIA's driver 580.126.09 loaded")
	assert.Empty(t, b.looks(t))
}

func TestWhatIsRefusedIsToldAgain(t *testing.T) {
	refuse := true
	var b *bench
	next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		if refuse {
			return errors.New("memory is short")
		}
		return b.sink.ConsumeLogs(ctx, ld)
	})
	require.NoError(t, err)
	b = newBench(t, next, nil)
	assert.Empty(t, b.looks(t))
	assert.Zero(t, b.counter("facts_dropped", "", ""), "they are told again")
	refuse = false
	assert.Equal(t, all, b.looks(t))
}

// What is refused for good is counted, and reported with the next heartbeat.
func TestLook_RefusedForGood_ToldWithTheHeartbeat(t *testing.T) {
	refuse := true
	var b *bench
	next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		if refuse {
			return consumererror.NewPermanent(errors.New("no such event"))
		}
		return b.sink.ConsumeLogs(ctx, ld)
	})
	require.NoError(t, err)
	b = newBench(t, next, nil)
	assert.Empty(t, b.looks(t))
	assert.EqualValues(t, len(all), b.counter("facts_dropped", "", ""))
	refuse = false
	assert.Empty(t, b.looks(t))
	b.now = b.now.Add(b.cfg.Heartbeat)
	assert.Equal(t, all, b.looks(t))
}

// A program that says nonsense costs only what it would have said.
func TestAProgramThatSaysNonsense(t *testing.T) {
	b := newBench(t, nil, nil)
	write(t, b.dir, "bin/nvidia-smi", "#!/bin/sh\necho nonsense\n")
	want := []string{"kernel 5.15.0-107-generic", "nvidia_kernel_driver 550.90.07"}
	assert.Equal(t, want, b.looks(t))
	b.all = time.Time{}
	b.looks(t)
	assert.EqualValues(t, 2, b.counter("faults", "reason", faultUnreadable))
	require.Equal(t, 1, b.said.FilterMessage("Some versions of this node can not be read").Len(), "once")
	write(t, b.dir, "bin/nvidia-smi", "#!/bin/sh\necho '"+answer+"'\n")
	b.all = time.Time{}
	assert.Equal(t, all, b.looks(t))
	assert.Equal(t, 1, b.said.FilterMessage("All versions of this node can be read again").Len())
}

// A program that hangs holds up neither what files say nor the end.
func TestAProgramThatHangs(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, func(c *Config) { c.PollInterval, c.Timeout = time.Second, 10*time.Minute })
	asked := filepath.Join(b.dir, "asked")
	write(t, b.dir, "bin/nvidia-smi", "#!/bin/sh\n: >"+asked+"\nexec sleep 600\n")
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { _, err := os.Stat(asked); return err == nil }, 30*time.Second, 5*time.Millisecond)
	began := time.Now()
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Less(t, time.Since(began), 10*time.Second)

	b = newBench(t, nil, nil)
	b.cfg.Timeout = 200 * time.Millisecond // less than Validate takes
	write(t, b.dir, "bin/nvidia-smi", "#!/bin/sh\nexec sleep 600\n")
	assert.Equal(t, []string{"kernel 5.15.0-107-generic", "nvidia_kernel_driver 550.90.07"}, b.looks(t))
	assert.EqualValues(t, 1, b.counter("faults", "reason", faultUnreadable))
}

// job has a process with NCCL listen on the node.
func job(t *testing.T, version string) (*rastest.Server, func(*Config)) {
	t.Helper()
	s := rastest.Start(t)
	s.Prose(rastest.Prose(version))
	return s, func(c *Config) { c.NCCLRAS = s.Address }
}

// NCCL is asked with each heartbeat, and is not told any more where nobody runs it.
func TestNCCL(t *testing.T) {
	s, configured := job(t, "2.28.7")
	b := newBench(t, nil, configured)
	with := slices.Insert(slices.Clone(all), 4, "nccl 2.28.7")
	assert.Equal(t, with, b.looks(t))
	attributes := b.sink.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(4).Attributes().AsRaw()
	assert.Equal(t, []any{"nccl", "2.28.7", "NCCL's RAS at " + s.Address},
		[]any{attributes["lockstep.version.domain"], attributes["lockstep.version.value"], attributes["lockstep.version.witness"]})
	for range 4 {
		assert.Empty(t, b.looks(t))
	}
	assert.Len(t, s.Commands(), 3, "one question, until the next heartbeat")
	s.Prose(rastest.Prose("2.30.3")) // another job began
	assert.Contains(t, b.looks(t), "nccl 2.30.3")
	b.cfg.NCCLRAS = "127.0.0.1:1" // no job runs
	b.all = time.Time{}
	assert.Equal(t, all, b.looks(t))
	assert.Zero(t, b.counter("faults", "", ""))
	assert.Zero(t, b.said.Len(), "it is no fault")
}

// A job whose processes do not answer holds up neither what others say nor the end.
func TestAJobThatHangs(t *testing.T) {
	t.Parallel()
	s, configured := job(t, "2.28.7")
	s.Silent()
	b := newBench(t, nil, func(c *Config) { configured(c); c.Timeout = time.Second })
	assert.Equal(t, all, b.looks(t))
	assert.EqualValues(t, 1, b.counter("faults", "reason", faultUnreadable))
	assert.Equal(t, 1, b.said.FilterMessage("Some versions of this node can not be read").Len())

	b = newBench(t, nil, func(c *Config) { configured(c); c.PollInterval, c.Timeout = time.Second, 10*time.Minute })
	asked := len(s.Commands())
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return len(s.Commands()) > asked }, 30*time.Second, 10*time.Millisecond)
	began := time.Now()
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Less(t, time.Since(began), 10*time.Second)
}

// By its own clock it looks, until it is shut down; a node without any of NVIDIA's is one, too.
func TestLooksByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := newDefaultConfig()
		cfg.PollInterval, cfg.RootPath, cfg.NvidiaSMI, cfg.FabricManager = time.Second, t.TempDir(), "", ""
		kernel := func(release string) { write(t, cfg.RootPath, "proc/sys/kernel/osrelease", release+"\n") }
		kernel("5.15")
		sink := &consumertest.LogsSink{}
		r, err := NewFactory().CreateLogs(t.Context(), metadatatest.NewSettings(componenttest.NewTelemetry()), cfg, sink)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(1500 * time.Millisecond)
		assert.Equal(t, 1, sink.LogRecordCount())
		kernel("5.16")
		time.Sleep(time.Second)
		assert.Equal(t, 2, sink.LogRecordCount(), "at the next look")
		require.NoError(t, r.Shutdown(t.Context()))
		kernel("5.17")
		time.Sleep(time.Minute)
		assert.Equal(t, 2, sink.LogRecordCount())
	})
}
