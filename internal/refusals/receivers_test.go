// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
	"github.com/lockstep-otel/lockstep/internal/testdata"
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

// every is the interval of all receivers here.
const every = 20 * time.Millisecond

// receivers are the signals of all receivers.
func receivers(t *testing.T) []subject {
	t.Helper()
	rings, dumps, lines, states := ring(t), dumpFiles, inspectorLog, "receiver_nccl_ras_events_"
	const kept = ", storage"
	return []subject{
		{name: "rank_events", signal: "traces", dropped: "receiver_rank_events_operations_dropped", emitted: "receiver_rank_events_operations_emitted", open: rings("traces")},
		{name: "rank_events", signal: "logs", dropped: "receiver_rank_events_events_dropped", open: rings("logs")},
		{name: "rank_events" + kept, signal: "traces", keeps: true, dropped: "receiver_rank_events_operations_dropped", emitted: "receiver_rank_events_operations_emitted", open: storing(rings("traces"))},
		{name: "flight_recorder", signal: "traces", dropped: "receiver_flight_recorder_operations_dropped", emitted: "receiver_flight_recorder_operations_emitted", open: dumps("traces")},
		{name: "flight_recorder", signal: "logs", dropped: "receiver_flight_recorder_events_dropped", key: attributes("lockstep.rank"), open: dumps("logs")},
		{name: "flight_recorder", signal: "metrics", rule: series, open: dumps("metrics")},
		{name: "nccl_inspector", signal: "traces", dropped: "receiver_nccl_inspector_operations_dropped", emitted: "receiver_nccl_inspector_operations_emitted", open: lines("traces")},
		{name: "nccl_inspector" + kept, signal: "traces", keeps: true, dropped: "receiver_nccl_inspector_operations_dropped", emitted: "receiver_nccl_inspector_operations_emitted", open: storing(lines("traces"))},
		{name: "nccl_inspector", signal: "metrics", rule: series, open: lines("metrics")},
		{name: "torch_trace", signal: "traces", dropped: "receiver_torch_trace_operations_dropped", emitted: "receiver_torch_trace_operations_emitted", open: profile},
		{name: "checkpoint", signal: "logs", dropped: "receiver_checkpoint_observations_dropped", emitted: "receiver_checkpoint_observations_emitted", open: saves},
		{name: "epoch_commit", signal: "logs", dropped: "receiver_epoch_commit_observations_dropped", emitted: "receiver_epoch_commit_observations_emitted", open: commits},
		{name: "fleet_version", signal: "logs", dropped: "receiver_fleet_version_facts_dropped", emitted: "receiver_fleet_version_facts_emitted", open: node},
		{name: "nccl_ras", signal: "logs", dropped: states + "dropped", emitted: states + "emitted", open: answers("logs")},
		{name: "nccl_ras", signal: "metrics", rule: series, open: answers("metrics")},
		{name: "job_kafka", signal: "traces", dropped: "receiver_job_kafka_items_dropped", open: topics("traces", true)},
		{name: "job_kafka", signal: "logs", dropped: "receiver_job_kafka_items_dropped", open: topics("logs", true)},
		{name: "job_kafka, nothing held", signal: "traces", keeps: true, dropped: "receiver_job_kafka_items_dropped", open: topics("traces", false)},
		{name: "job_kafka, nothing held", signal: "logs", keeps: true, dropped: "receiver_job_kafka_items_dropped", open: topics("logs", false)},
		{name: "owd_probe", signal: "logs", rule: lost, dropped: "receiver_owd_probe_edges_lost", emitted: "receiver_owd_probe_edges_emitted", open: mesh("logs")},
		{name: "owd_probe", signal: "metrics", rule: series, open: mesh("metrics")},
	}
}

// storing returns sources of which a storage keeps how far they were read.
func storing(open func(*testing.T) func(*testing.T, *life)) func(*testing.T) func(*testing.T, *life) {
	return func(t *testing.T) func(*testing.T, *life) {
		t.Helper()
		start, kept := open(t), newMemory()
		return func(t *testing.T, l *life) {
			t.Helper()
			l.host = kept
			start(t, l)
		}
	}
}

// storage names the storage of a life; nil where it has none.
func (l *life) storage() *component.ID {
	if len(l.host.GetExtensions()) == 0 {
		return nil
	}
	return &storageID
}

// receive starts the receiver of one signal.
func (l *life) receive(t *testing.T, f receiver.Factory, signal string, cfg component.Config) {
	t.Helper()
	set := receiver.Settings{ID: component.NewID(f.Type()), TelemetrySettings: l.telemetry.NewTelemetrySettings()}
	var c component.Component
	var err error
	switch signal {
	case "traces":
		c, err = f.CreateTraces(t.Context(), set, cfg, l.next)
	case "logs":
		c, err = f.CreateLogs(t.Context(), set, cfg, l.next)
	default:
		c, err = f.CreateMetrics(t.Context(), set, cfg, l.next)
	}
	l.run(t, c, err)
}

func quickly(r *configretry.BackOffConfig) {
	r.InitialInterval, r.MaxInterval = time.Millisecond, every
}

// ring returns sources that are the ring of a process that has ended, always the same.
func ring(t *testing.T) func(signal string) func(*testing.T) func(*testing.T, *life) {
	t.Helper()
	cbuild.Make(t, "inject", "tests")
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(testdata.Root(t), "bin", "inject", "ring_events"), "3", "close")
	cmd.Env = append(os.Environ(), "LOCKSTEP_DIR="+dir, "RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1", "LOCKSTEP_JOB_ID=job", "LOCKSTEP_RING_LANES=4", "LOCKSTEP_RING_RECORDS=1024")
	require.NoError(t, cmd.Run())
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, paths, 1)
	content, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	return func(signal string) func(*testing.T) func(*testing.T, *life) {
		return func(t *testing.T) func(*testing.T, *life) {
			t.Helper()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(paths[0])), content, 0o600))
			return func(t *testing.T, l *life) {
				t.Helper()
				f := rankeventsreceiver.NewFactory()
				cfg := f.CreateDefaultConfig().(*rankeventsreceiver.Config)
				cfg.Directory, cfg.PollInterval, cfg.StorageID = dir, every, l.storage()
				quickly(&cfg.RetryOnFailure)
				l.receive(t, f, signal, cfg)
			}
		}
	}
}

// dumpFiles returns sources that are a file of one rank with an operation that is over and one that is open.
func dumpFiles(signal string) func(*testing.T) func(*testing.T, *life) {
	const epoch, ms = int64(1_790_000_000_000_000_000), int64(time.Millisecond)
	took := 20.0
	group := frwrite.Entry{
		Group: "0", Desc: "default_pg", Name: "nccl:all_reduce", In: [][]int64{{8}}, Out: [][]int64{{8}},
		InTypes: []string{"Float"}, OutTypes: []string{"Float"}, TimeoutMS: 600_000,
	}
	over, open := group, group
	over.CollectiveSeq, over.OpID, over.Created, over.Duration, over.State = 1, 1, epoch, &took, frwrite.Completed
	over.Started, over.Completed, over.Retired = epoch+5*ms, epoch+100*ms, true
	open.RecordID, open.CollectiveSeq, open.OpID, open.Created, open.State = 1, 2, 2, epoch+1000*ms, frwrite.Scheduled
	dump := frwrite.Pickle(&frwrite.Dump{
		LibVersion: "2.29.2", Groups: []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0}}},
		Status: []frwrite.Status{{PGID: 0, Enqueued: 2, Started: -1, Completed: 1}}, Entries: []frwrite.Entry{over, open},
	})
	return func(t *testing.T) func(*testing.T, *life) {
		t.Helper()
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "trace_rank_0"), dump, 0o600))
		return func(t *testing.T, l *life) {
			t.Helper()
			f := flightrecorderreceiver.NewFactory()
			cfg := f.CreateDefaultConfig().(*flightrecorderreceiver.Config)
			cfg.Include, cfg.JobID = []string{dir}, "job"
			cfg.PollInterval, cfg.Settle, cfg.Wait, cfg.MaxWait = every, every, every, every
			quickly(&cfg.RetryOnFailure)
			l.receive(t, f, signal, cfg)
		}
	}
}

// inspectorLog returns sources that are a log of four collectives.
func inspectorLog(signal string) func(*testing.T) func(*testing.T, *life) {
	var log strings.Builder
	for seq := range int64(4) {
		at := 1_790_000_000_000_000 + 10_000*seq
		fmt.Fprintf(&log, `{"header":{"id":"0xabc","rank":0,"n_ranks":4,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0",`+
			`"dump_timestamp_us":%d,"hostname":"n","pid":100},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1000000,`+
			`"coll_exec_time_us":1000,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":1.0,"coll_busbw_gbs":1.5,"event_trace_ts":`+
			`{"coll_start_ts":%[1]d,"coll_stop_ts":%[1]d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%[1]d,"kernel_stop_ts":%[3]d,"kernel_record_ts":%[3]d}]}}}`+"\n",
			at, seq, at+1000)
	}
	return func(t *testing.T) func(*testing.T, *life) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "n-pid100.log")
		require.NoError(t, os.WriteFile(path, []byte(log.String()), 0o600))
		return func(t *testing.T, l *life) {
			t.Helper()
			f := ncclinspectorreceiver.NewFactory()
			cfg := f.CreateDefaultConfig().(*ncclinspectorreceiver.Config)
			cfg.Include, cfg.JobID, cfg.PollInterval, cfg.WorldWait, cfg.StepWait = []string{path}, "job", every, 0, 0
			cfg.StorageID = l.storage()
			quickly(&cfg.RetryOnFailure)
			l.receive(t, f, signal, cfg)
		}
	}
}

// profile is a trace of one rank that PyTorch's profiler wrote.
func profile(t *testing.T) func(*testing.T, *life) {
	t.Helper()
	path := filepath.Join(testdata.Recording(t, "slow"), "rank0.json.gz")
	return func(t *testing.T, l *life) {
		t.Helper()
		f := torchtracereceiver.NewFactory()
		cfg := f.CreateDefaultConfig().(*torchtracereceiver.Config)
		cfg.Include, cfg.Mode, cfg.PollInterval = []string{path}, "watch", every
		quickly(&cfg.RetryOnFailure)
		l.receive(t, f, "traces", cfg)
	}
}

// saves is a folder with one save.
func saves(t *testing.T) func(*testing.T, *life) {
	t.Helper()
	dir := t.TempDir()
	jobs := ckptsim.Jobs()
	i := slices.IndexFunc(jobs, func(j ckptsim.Job) bool { return j.Name == "torchtitan" })
	require.GreaterOrEqual(t, i, 0)
	require.NoError(t, jobs[i].Save(10, nil).Make(t.Context(), dir, func(ckptsim.Op) {}))
	return func(t *testing.T, l *life) {
		t.Helper()
		f := checkpointreceiver.NewFactory()
		cfg := f.CreateDefaultConfig().(*checkpointreceiver.Config)
		cfg.Roots, cfg.PollInterval = []checkpointreceiver.RootConfig{{Path: dir, JobID: "job"}}, every
		l.receive(t, f, "logs", cfg)
	}
}

// commits are the messages of a rank, which sends them to every collector.
func commits(t *testing.T) func(*testing.T, *life) {
	t.Helper()
	return func(t *testing.T, l *life) {
		t.Helper()
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, free.Close())
		f := epochcommitreceiver.NewFactory()
		cfg := f.CreateDefaultConfig().(*epochcommitreceiver.Config)
		cfg.NetAddr.Endpoint, cfg.Interval = free.Addr().String(), every
		l.receive(t, f, "logs", cfg)
		body := `{"version": 1, "job": "job", "domain": "rank 0", "domains": 2, "life": "a", "sequence": 1, "slots": [{"epoch": 5, "attempt": "e", "state": "tentative"}]}`
		answer, err := http.Post("http://"+cfg.NetAddr.Endpoint+"/v1/commit", "application/json", bytes.NewBufferString(body))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
}

// node is a node with a kernel and a driver.
func node(t *testing.T) func(*testing.T, *life) {
	t.Helper()
	dir := t.TempDir()
	for path, text := range map[string]string{"proc/sys/kernel/osrelease": "5.15.0\n", "sys/module/nvidia/version": "550.90.07\n"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	return func(t *testing.T, l *life) {
		t.Helper()
		f := fleetversionreceiver.NewFactory()
		cfg := f.CreateDefaultConfig().(*fleetversionreceiver.Config)
		cfg.RootPath, cfg.Node, cfg.HostID, cfg.PollInterval = dir, "node", "id", every
		cfg.NvidiaSMI, cfg.FabricManager = "", ""
		l.receive(t, f, "logs", cfg)
	}
}

// answers returns sources that are NCCL's RAS of a job of two ranks.
func answers(signal string) func(*testing.T) func(*testing.T, *life) {
	return func(t *testing.T) func(*testing.T, *life) {
		t.Helper()
		server := rastest.Start(t, rastest.JSON(rastest.Comm{Hash: 0xab, Members: []rastest.Member{
			{Rank: 0, Host: "10.0.0.1", PID: 10, AllReduce: 5}, {Rank: 1, Host: "10.0.0.2", PID: 11, AllReduce: 5},
		}}))
		return func(t *testing.T, l *life) {
			t.Helper()
			f := ncclrasreceiver.NewFactory()
			cfg := f.CreateDefaultConfig().(*ncclrasreceiver.Config)
			cfg.Endpoints, cfg.PollInterval, cfg.JobID = []string{server.Address}, every, "job"
			l.receive(t, f, signal, cfg)
		}
	}
}

// addresses are those that probe nodes of these tests have taken.
var addresses atomic.Int64

// mesh returns sources that are the clocks of two nodes; the receiver is one of them.
func mesh(signal string) func(*testing.T) func(*testing.T, *life) {
	return func(t *testing.T) func(*testing.T, *life) {
		t.Helper()
		return func(t *testing.T, l *life) {
			t.Helper()
			pid := os.Getpid()
			address := func() string { return fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%254, pid&255, 1+addresses.Add(1)%250) }
			a, b := address(), address()
			f := owdprobereceiver.NewFactory()
			config := func(node, address string) component.Config {
				cfg := f.CreateDefaultConfig().(*owdprobereceiver.Config)
				cfg.Node, cfg.HostID, cfg.Endpoints, cfg.Port = node, "host-"+node, []string{address}, 38863
				cfg.Peers.List = []string{"a " + a, "b " + b}
				cfg.Window, cfg.MetricsInterval, cfg.PairInterval = 5*every, every, 5*every
				return cfg
			}
			other := begin(t, func(t *testing.T, l *life) {
				t.Helper()
				l.receive(t, f, "logs", config("b", b))
			}, delivertest.NewNext(delivertest.Takes))
			l.running = other.running
			l.receive(t, f, signal, config("a", a))
		}
	}
}
