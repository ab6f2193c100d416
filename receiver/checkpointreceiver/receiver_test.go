// SPDX-License-Identifier: Apache-2.0

package checkpointreceiver

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

	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/receiver/checkpointreceiver/internal/metadatatest"
)

// bench is a receiver of one folder, with what it tells of and to.
type bench struct {
	*looker
	sink *consumertest.LogsSink
	tel  *componenttest.Telemetry
	said *observer.ObservedLogs
	now  time.Time
}

func start(t *testing.T, root RootConfig, next consumer.Logs) *bench {
	t.Helper()
	cfg := newDefaultConfig()
	cfg.Roots, cfg.Node = []RootConfig{root}, "node7"
	require.NoError(t, cfg.Validate())
	b := &bench{sink: &consumertest.LogsSink{}, tel: componenttest.NewTelemetry(), now: time.Unix(1_760_000_000, 0)}
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

// look looks once, some time later.
func (b *bench) look() {
	b.now = b.now.Add(b.cfg.PollInterval)
	b.folders[0].rest = time.Time{}
	b.folders[0].look(b.now)
}

func (b *bench) counter(name, key, value string) (sum int64) {
	m, err := b.tel.GetMetric("otelcol_receiver_checkpoint_" + name)
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

// observations are what was told.
func (b *bench) observations(t *testing.T) (out []model.EpochObservation) {
	t.Helper()
	for _, ld := range b.sink.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					o, ok, err := epochmap.LogToObservation(rl.Resource(), lr)
					require.NoError(t, err)
					require.True(t, ok)
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// verdict is what an engine makes of all that was told.
func (b *bench) verdict(t *testing.T, save int64) epoch.Verdict {
	t.Helper()
	e := epoch.New(epoch.Config{})
	for _, o := range b.observations(t) {
		e.Observe(&o)
	}
	gens := e.Generations("job")
	require.NotEmpty(t, gens)
	return e.Judge("job", gens[len(gens)-1], save).Verdict
}

// saved makes saves of a job in a new folder.
func saved(t *testing.T, name string, epochs ...int64) (dir string, job ckptsim.Job) {
	t.Helper()
	dir = t.TempDir()
	jobs := ckptsim.Jobs()
	i := slices.IndexFunc(jobs, func(j ckptsim.Job) bool { return j.Name == name })
	require.GreaterOrEqual(t, i, 0)
	for _, e := range epochs {
		require.NoError(t, jobs[i].Save(e, nil).Make(t.Context(), dir, func(ckptsim.Op) {}))
	}
	return dir, jobs[i]
}

// Saves on a real disk are told of, converge where they are whole, and are revoked where they go.
func TestSavesAreTold(t *testing.T) {
	dir, job := saved(t, "megatron, torch_dist", 10)
	b := start(t, RootConfig{Path: dir, JobID: "job"}, nil)
	b.look()
	require.Equal(t, epoch.Converged, b.verdict(t, 10))
	assert.EqualValues(t, 1, b.counter("looks", "outcome", lookTold))
	told := len(b.observations(t))
	assert.EqualValues(t, told, b.counter("observations_emitted", "", ""))

	b.look()
	assert.Len(t, b.observations(t), told, "nothing is new")
	assert.EqualValues(t, 1, b.counter("looks", "outcome", lookNothingNew))

	require.NoError(t, job.Save(20, nil).Make(t.Context(), dir, func(ckptsim.Op) {}))
	b.look()
	assert.Equal(t, epoch.Converged, b.verdict(t, 20))
	assert.Equal(t, epoch.Converged, b.verdict(t, 10))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "iter_0000010")))
	b.look()
	assert.Equal(t, epoch.Revoked, b.verdict(t, 10))
	assert.Equal(t, epoch.Converged, b.verdict(t, 20))
	for _, o := range b.observations(t) {
		assert.Contains(t, o.Observer, "node7 ")
	}
}

// Of a folder that holds a part of each save, no save is whole before all places confirm it.
func TestPlaces(t *testing.T) {
	dir, _ := saved(t, "megatron, torch_dist", 10)
	b := start(t, RootConfig{Path: dir, JobID: "job", Places: 2}, nil)
	b.look()
	assert.Equal(t, epoch.Converging, b.verdict(t, 10))
	for _, o := range b.observations(t) {
		assert.Contains(t, o.Domain.ID, "of node7")
	}
}

// What is refused is told again; behind a batch that was refused none is handed on.
func TestWhatIsRefusedIsToldAgain(t *testing.T) {
	calls, refused := 0, errors.New("memory is short")
	var b *bench
	next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		if calls++; calls == 2 {
			return refused
		}
		return b.sink.ConsumeLogs(ctx, ld)
	})
	require.NoError(t, err)
	b = start(t, RootConfig{Path: t.TempDir(), JobID: "job"}, next)
	obs := make([]model.EpochObservation, 2*perBatch+1)
	for i := range obs {
		obs[i] = model.EpochObservation{Save: int64(i), Domain: model.Domain{Kind: model.DomainModel}, State: model.DomainCommitted, Observer: "x", JobID: "job"}
	}
	assert.Equal(t, lookRefused, b.folders[0].tell(obs))
	assert.Equal(t, 2, calls)
	assert.Len(t, b.observations(t), perBatch)
	assert.Zero(t, b.counter("observations_dropped", "", ""), "they are told again")
	refused = consumererror.NewPermanent(refused)
	calls = 1
	assert.Equal(t, lookRefused, b.folders[0].tell(obs))
	assert.EqualValues(t, len(obs), b.counter("observations_dropped", "", ""), "none is told behind one that was refused")

	refused = errors.New("memory is short")
	dir, _ := saved(t, "torchtitan", 10)
	calls = 1
	b = start(t, RootConfig{Path: dir, JobID: "job"}, next)
	b.look()
	assert.Empty(t, b.observations(t))
	assert.EqualValues(t, 1, b.counter("looks", "outcome", lookRefused))
	b.look()
	assert.Equal(t, epoch.Converged, b.verdict(t, 10))
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
	dir, _ := saved(t, "torchtitan", 10)
	b = start(t, RootConfig{Path: dir, JobID: "job"}, next)
	b.look()
	dropped := b.counter("observations_dropped", "", "")
	assert.Positive(t, dropped)
	refuse = false
	b.look()
	assert.Empty(t, b.observations(t))
	b.now = b.now.Add(b.cfg.Heartbeat)
	b.look()
	assert.Equal(t, epoch.Converged, b.verdict(t, 10))
	assert.Equal(t, dropped, b.counter("observations_dropped", "", ""))
}

func TestAFolderThatCanNotBeRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	b := start(t, RootConfig{Path: dir, JobID: "job"}, nil)
	b.look()
	b.look()
	assert.EqualValues(t, 2, b.counter("looks", "outcome", lookUnreadable))
	assert.Equal(t, 1, b.said.FilterMessage("Checkpoints can not be read").Len(), "once")
	from, _ := saved(t, "torchtitan", 10)
	require.NoError(t, os.Rename(from, dir))
	b.look()
	assert.Equal(t, 1, b.said.FilterMessage("Checkpoints can be read again").Len())
	assert.Equal(t, epoch.Converged, b.verdict(t, 10))
}

func TestSavesOfUnknownEpochsAreCounted(t *testing.T) {
	dir, _ := saved(t, "safetensors, overwrite in place", 10)
	b := start(t, RootConfig{Path: dir, JobID: "job"}, nil)
	b.look()
	assert.Empty(t, b.observations(t))
	assert.EqualValues(t, 1, b.counter("faults", "reason", faultUnnamed))
}

// What takes long is looked at less often.
func TestAFolderRests(t *testing.T) {
	dir, _ := saved(t, "torchtitan", 10)
	b := start(t, RootConfig{Path: dir, JobID: "job"}, nil)
	f := b.folders[0]
	f.look(time.Now())
	require.Positive(t, f.took)
	assert.WithinDuration(t, time.Now().Add(9*f.took), f.rest, f.took+time.Second)
	f.look(f.rest.Add(-time.Nanosecond))
	assert.EqualValues(t, 1, b.counter("looks", "outcome", lookTold)+b.counter("looks", "outcome", lookNothingNew))
}

// By its own clock it looks, until it is shut down.
func TestLooksByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, _ := saved(t, "torchtitan", 10)
		cfg := newDefaultConfig()
		cfg.Roots, cfg.PollInterval = []RootConfig{{Path: dir, JobID: "job"}, {Path: filepath.Join(dir, "none"), JobID: "job"}}, time.Second
		sink := &consumertest.LogsSink{}
		r, err := NewFactory().CreateLogs(t.Context(), metadatatest.NewSettings(componenttest.NewTelemetry()), cfg, sink)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(time.Minute)
		require.NoError(t, r.Shutdown(t.Context()))
		n := sink.LogRecordCount()
		require.Positive(t, n)
		time.Sleep(time.Minute)
		assert.Equal(t, n, sink.LogRecordCount())
	})
}

// A save of weights alone is whole, and nothing that a job can recover: it is told so as preflight does.
func TestWeightsAloneAreNotConfirmed(t *testing.T) {
	for name, of := range map[string]func(dir string) string{
		"a folder of saves": filepath.Dir,
		"a save":            func(dir string) string { return dir },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "step-100")
			require.NoError(t, os.Mkdir(dir, 0o755))
			for file, data := range ckptsim.DCPOf(100, 2, "w") {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), data, 0o600))
			}
			b := start(t, RootConfig{Path: of(dir), JobID: "job"}, nil)
			b.look()
			require.Equal(t, epoch.Converging, b.verdict(t, 100))
			var said []string
			for _, o := range b.observations(t) {
				if o.Domain.Kind == model.DomainOptimizer {
					said = append(said, string(o.State)+": "+o.Witness)
				}
			}
			require.Len(t, said, 1)
			assert.Contains(t, said[0], "absent: complete, weights only: cannot resume training, as no item in .metadata is of an optimizer")
		})
	}
}
