// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/receiver/rankeventsreceiver/internal/metadatatest"
)

// agentVar names the directory of the process that TestAgent is, when it is one.
const agentVar = "LOCKSTEP_TEST_AGENT"

// fileDisk is a storage that a process leaves whole at whatever moment it is killed.
type fileDisk struct {
	disk
	path string
}

func (d *fileDisk) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{storageID: d}
}

func (d *fileDisk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d *fileDisk) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if err := d.disk.Batch(ctx, ops...); err != nil {
		return err
	}
	raw, err := json.Marshal(d.data)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.path+".tmp", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(d.path+".tmp", d.path)
}

func (d *fileDisk) Get(_ context.Context, key string) ([]byte, error) { return d.data[key], nil }

func openFileDisk(t *testing.T, dir string) *fileDisk {
	t.Helper()
	d := &fileDisk{path: filepath.Join(dir, "storage")}
	if raw, err := os.ReadFile(d.path); err == nil {
		require.NoError(t, json.Unmarshal(raw, &d.data))
	}
	return d
}

// line is a step that an agent handed on, or a range of missing ones.
type line struct {
	Step, Last int64
	ID         string
}

// TestAgent is the process that TestRestart_SIGKILL_OfAProcess kills.
func TestAgent(t *testing.T) {
	dir := os.Getenv(agentVar)
	if dir == "" {
		t.Skip("no process of another test")
	}
	out, err := os.OpenFile(filepath.Join(dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	write := func(l line) error {
		raw, err := json.Marshal(l)
		if err != nil {
			return err
		}
		_, err = out.Write(append(raw, '\n'))
		return err
	}
	traces, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			if step, ok := s.Attributes().Get(semconv.Step); ok && s.Name() == "step" {
				if err := write(line{Step: step.Int(), Last: step.Int(), ID: s.SpanID().String()}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	logs, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
		lr := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		if lr.EventName() != semconv.EventStepsMissing {
			return nil
		}
		first, _ := lr.Attributes().Get(semconv.StepsMissingFirst)
		last, _ := lr.Attributes().Get(semconv.StepsMissingLast)
		return write(line{Step: first.Int(), Last: last.Int()})
	})
	require.NoError(t, err)
	cfg := config(filepath.Join(dir, "rings"))
	cfg.StorageID, cfg.RemoveDead = &storageID, 0
	set := metadatatest.NewSettings(componenttest.NewTelemetry())
	tr, err := createTraces(t.Context(), set, cfg, traces)
	require.NoError(t, err)
	lo, err := createLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	host := openFileDisk(t, dir)
	require.NoError(t, tr.Start(t.Context(), host))
	require.NoError(t, lo.Start(t.Context(), host))
	_, err = os.Stdout.WriteString("reading\n")
	require.NoError(t, err)
	select {} // until it is killed
}

// startAgent starts the process and returns when it reads.
func startAgent(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAgent$", "-test.v")
	cmd.Env = append(os.Environ(), agentVar+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "reading" {
			return cmd
		}
	}
	t.Fatal("start agent: it ended")
	return nil
}

// A process that is killed while others read and write its ring loses no step uncounted.
func TestRestart_SIGKILL_OfAProcess(t *testing.T) {
	t.Parallel() // it waits more than it works
	const steps, kills = 100, 5
	dir := t.TempDir()
	rings := filepath.Join(dir, "rings")
	require.NoError(t, os.Mkdir(rings, 0o700))
	agent := startAgent(t, dir)
	job := startJob(t, rings, 1, steps, "close", "LOCKSTEP_RING_RECORDS=256") // of some 600 that it writes
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "storage"))
		return err == nil
	}, patience, time.Millisecond, "the ring is being read")
	for n := range kills {
		time.Sleep(time.Duration(60+17*n) * time.Millisecond) // a moment as good as any other
		require.NoError(t, agent.Process.Kill())
		_ = agent.Wait()
		agent = startAgent(t, dir)
	}
	job.wait()
	name := filepath.Base(onlyRing(t, rings))
	var kept map[string][]byte
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, "storage"))
		return err == nil && json.Unmarshal(raw, &kept) == nil && string(kept["rings"]) == fmt.Sprintf("{%q:true}", name)
	}, patience, 10*time.Millisecond, "the ring is read to its end")
	p, err := decodePosition(kept[entryKey(name)])
	require.NoError(t, err)
	r, err := ring.Open(onlyRing(t, rings), ring.Options{})
	require.NoError(t, err)
	defer r.Close()
	written := uint64(0)
	for _, lane := range r.Lanes(nil) {
		written += lane.Head
	}
	assert.Equal(t, written, uint64(p.Count.Read+p.Count.Lost+p.Count.Before+p.Count.Skipped), "%+v", p.Count)
	assert.Zero(t, p.Count.Before)
	ids := idsByStep(t, filepath.Join(dir, "out"))
	for n := range int64(steps) {
		if !ids[n][""] { // of a step that is missing, as where the machine stood still
			assert.Len(t, ids[n], 1, "ids of step %d", n)
		}
	}
}

func idsByStep(t *testing.T, path string) map[int64]map[string]bool {
	t.Helper()
	raw, err := os.Open(path)
	require.NoError(t, err)
	defer raw.Close()
	ids := map[int64]map[string]bool{}
	for dec := json.NewDecoder(raw); dec.More(); {
		var l line
		require.NoError(t, dec.Decode(&l))
		for n := l.Step; n <= l.Last; n++ {
			if ids[n] == nil {
				ids[n] = map[string]bool{}
			}
			ids[n][l.ID] = true
		}
	}
	return ids
}
