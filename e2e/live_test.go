// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	liveRanks = 4
	slowRank  = 2
)

// A job that trains now, one rank of it slow: the finding is there while it
// runs, with links in Jaeger and a series per rank in Prometheus. While a rank is stopped,
// the collective that the others are left in is told of; when one is killed, what
// it had open.
func TestLiveJob(t *testing.T) {
	t.Parallel()
	dir := ringDirectory(t)
	j := startJaeger(t)
	events := filepath.Join(t.TempDir(), "events.jsonl")
	c := startCollector(t, "standalone.yaml", map[string]string{
		"LOCKSTEP_DIR": dir, "LOCKSTEP_TRACES": t.TempDir(), "LOCKSTEP_EVENTS": events,
		"LOCKSTEP_JAEGER_ENDPOINT": j.otlp,
	})
	workers := startWorkers(t, dir, "host")
	rank := int64(slowRank)
	t.Run("file", func(t *testing.T) { assertFinding(t, c, truth{Rank: &rank, Class: "host"}) })
	t.Run("links", func(t *testing.T) { assertLinks(t, j, liveRanks, c) })
	t.Run("prometheus", func(t *testing.T) { assertRankSeries(t, c, liveRanks) })
	const held = 1
	stop := func() (hung func(event) bool) {
		require.NoError(t, workers[held].cmd.Process.Signal(syscall.SIGSTOP))
		stopped := time.Now()
		return func(e event) bool {
			return e.time.After(stopped) && e.rank != strconv.Itoa(held) && e.text["lockstep.op.open.status"] == "open"
		}
	}
	t.Run("stopped", func(t *testing.T) {
		hung := stop()
		first := awaitOpen(t, c, events, hung)
		assert.NotEmpty(t, first.text["lockstep.op.open.proxy.state"], "what its transfers wait for")
		behind := awaitOpen(t, c, events, func(e event) bool { return hung(e) && e.rank == strconv.Itoa(held+1) })
		assert.Equal(t, "recv_peer_or_wire", behind.text["lockstep.op.open.receive.state"])
		assert.Equal(t, strconv.Itoa(held), behind.text["lockstep.op.open.receive.peer"], "who holds the ring up")
		assert.Equal(t, "all_reduce", first.text["lockstep.collective.name"], "what the others are left in")
		require.NoError(t, workers[held].cmd.Process.Signal(syscall.SIGCONT))
		awaitOpen(t, c, events, func(e event) bool {
			return e.time.After(first.time) && e.rank == first.rank && e.text["lockstep.op.open.status"] == "closed" &&
				e.text["lockstep.collective.seq"] == first.text["lockstep.collective.seq"]
		})
	})
	// Killed while it hangs, since a rank that dies between two collectives leaves none.
	t.Run("killed", func(t *testing.T) {
		e := awaitOpen(t, c, events, stop())
		rank, err := strconv.Atoi(e.rank)
		require.NoError(t, err)
		require.NoError(t, workers[rank].cmd.Process.Kill())
		awaitOpen(t, c, events, func(d event) bool { return d.rank == e.rank && d.flag["lockstep.op.open.died"] })
	})
	assert.Zero(t, c.terminate(t, stopLimit))
}

// The same job seen by an agent, judged by a gateway.
func TestLiveJobThroughAgent(t *testing.T) {
	t.Parallel()
	dir := ringDirectory(t)
	j := startJaeger(t)
	gateway := startCollector(t, "gateway.yaml", map[string]string{
		"LOCKSTEP_JAEGER_ENDPOINT": j.otlp, "LOCKSTEP_EVENTS": filepath.Join(t.TempDir(), "events.jsonl"),
	})
	agent := startCollector(t, "agent.yaml", map[string]string{
		"LOCKSTEP_DIR": dir, "LOCKSTEP_TRACES": t.TempDir(),
		"LOCKSTEP_GATEWAY_ENDPOINT": gateway.otlp, "LOCKSTEP_GATEWAY_INSECURE": "true",
	})
	startWorkers(t, dir, "link")
	rank := int64(slowRank)
	assertFinding(t, gateway, truth{Rank: &rank, Class: "link"})
	assert.Zero(t, agent.terminate(t, stopLimit))
	assert.Zero(t, gateway.terminate(t, stopLimit))
}

// ringDirectory has a short name: it becomes part of every ring's path.
func ringDirectory(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "rings")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

// startWorkers starts the demo's job, which trains until it is interrupted. hosts are the ids that
// ranks give their host, in turn.
func startWorkers(t *testing.T, dir, fault string, hosts ...string) []*process {
	t.Helper()
	program, plugin := built(t, "lockstep-demo-worker"), built(t, "libnccl-profiler-lockstep.so")
	meet := t.TempDir()
	workers := make([]*process, liveRanks)
	for rank := range workers {
		args := []string{"--meet", meet, "--rank", strconv.Itoa(rank), "--ranks", strconv.Itoa(liveRanks), "--steps", "0"}
		if rank == slowRank {
			args = append(args, "--fault", fault)
		}
		env := map[string]string{
			"LOCKSTEP_DIR": dir, "NCCL_PROFILER_PLUGIN": plugin, "LOCKSTEP_JOB_ID": "live",
			"RANK": strconv.Itoa(rank), "WORLD_SIZE": strconv.Itoa(liveRanks), "LOCAL_RANK": strconv.Itoa(rank),
			"LOCKSTEP_RING_RECORDS": "4096", "LOCKSTEP_RING_LANES": "8",
		}
		if len(hosts) > 0 {
			env["LOCKSTEP_HOST_ID"] = hosts[rank%len(hosts)]
		}
		workers[rank] = start(t, env, program, args...)
	}
	return workers
}

// event is a log event of one rank.
type event struct {
	time time.Time
	rank string
	text map[string]string
	flag map[string]bool
}

// awaitOpen waits for an event of an operation that does not end.
func awaitOpen(t *testing.T, c *collector, file string, is func(event) bool) (found event) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		all, err := openEvents(file)
		if err != nil {
			return err
		}
		for _, e := range all {
			if is(e) {
				found = e
				return nil
			}
		}
		return fmt.Errorf("find the event in %s: got %v", file, all)
	}, c.process)
	return found
}

// openEvents reads the events lockstep.op.open of a file of OTLP as JSON lines.
func openEvents(file string) (all []event, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(content) {
		var logs logLine
		if err := json.Unmarshal(line, &logs); err != nil {
			return nil, fmt.Errorf("decode a line of %s: %w", file, err)
		}
		for _, resource := range logs.ResourceLogs {
			for _, scope := range resource.ScopeLogs {
				for _, record := range scope.LogRecords {
					if record.EventName == "lockstep.op.open" {
						all = append(all, newEvent(resource.Resource.Attributes, record))
					}
				}
			}
		}
	}
	return all, nil
}

func newEvent(resource []keyValue, record logRecord) event {
	e := event{time: time.Unix(0, record.TimeUnixNano), text: map[string]string{}, flag: map[string]bool{}}
	for _, a := range resource {
		if a.Key == "lockstep.rank" {
			e.rank = a.Value.Int
		}
	}
	for _, a := range record.Attributes {
		e.text[a.Key], e.flag[a.Key] = a.Value.String+a.Value.Int, a.Value.Bool
	}
	return e
}
