// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/lockstep-otel/lockstep/bench/internal/broker"
)

// process is one of which the kernel is asked.
type process struct{ pid int }

// usage is what a process has used: of all cores, and bytes of memory at most.
type usage struct {
	cpu  time.Duration
	peak int64
}

// hertz is the unit in which the kernel gives times of processes, on every system.
const hertz = 100

// usedBy returns what processes have used since their starts (proc(5): stat, fields 14 and 15; status, VmHWM).
func usedBy(processes []process) (all []usage, err error) {
	for _, p := range processes {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
		if err != nil {
			return nil, fmt.Errorf("measure a process: %w", err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from field 3 on
		user, err := strconv.ParseInt(fields[11], 10, 64)
		system, e := strconv.ParseInt(fields[12], 10, 64)
		if err = errors.Join(err, e); err != nil {
			return nil, fmt.Errorf("measure a process: %w", err)
		}
		peak, err := p.peak()
		if err != nil {
			return nil, err
		}
		all = append(all, usage{time.Duration(user+system) * time.Second / hertz, peak})
	}
	return all, nil
}

func (p process) peak() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return 0, fmt.Errorf("measure a process: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")), 10, 64)
			return n << 10, err //nolint:wrapcheck // the kernel's text
		}
	}
	return 0, fmt.Errorf("measure process %d: its status has no VmHWM", p.pid)
}

// collector is one with a published configuration.
type collector struct {
	process
	name  string
	env   map[string]string
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{}
	meter string // address of its own metrics
	reads int64  // partitions
}

const (
	startLimit = time.Minute
	endLimit   = 30 * time.Second
)

// group returns arguments that give each size groups of its own.
func group(stage string, ranks int) []string {
	return []string{"--config", fmt.Sprintf("yaml:{receivers: {job_kafka: {group_id: %s-%d}}}", stage, ranks)}
}

// start starts a collector that reads so many topics, and waits until it is well. The overlay is of arguments.
func (w *world) start(ctx context.Context, config string, topics int64, overlay []string) (*collector, error) {
	ports, err := broker.FreePorts(6)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(ports[1])
	if err != nil {
		return nil, fmt.Errorf("choose a port: %w", err)
	}
	dir := filepath.Join(w.dir, config)
	c := &collector{name: config, meter: "http://" + ports[1] + "/metrics", reads: topics * broker.Partitions, ended: make(chan struct{}), env: map[string]string{
		"LOCKSTEP_KAFKA_BROKERS": w.broker.Address, "LOCKSTEP_STATE": dir, "LOCKSTEP_HEALTH_ENDPOINT": ports[0],
		"LOCKSTEP_TELEMETRY_HOST": host, "LOCKSTEP_TELEMETRY_PORT": port, "LOCKSTEP_OTLP_GRPC_ENDPOINT": ports[2], "LOCKSTEP_OTLP_HTTP_ENDPOINT": ports[5],
		"LOCKSTEP_TIMELINE_ENDPOINT": ports[3], "LOCKSTEP_PROMETHEUS_ENDPOINT": ports[4], "LOCKSTEP_JAEGER_ENDPOINT": w.jaeger.address,
		"LOCKSTEP_FINDINGS": dir + "-findings.jsonl", "LOCKSTEP_EVENTS": dir + "-events.jsonl",
	}}
	c.cmd = exec.CommandContext(ctx, w.o.collector, append([]string{"--config", filepath.Join(w.o.configs, config)}, overlay...)...) //nolint:gosec // of a flag
	c.cmd.Env = os.Environ()
	for _, env := range []map[string]string{c.env, w.topics} {
		for name, value := range env {
			c.cmd.Env = append(c.cmd.Env, name+"="+value)
		}
	}
	if c.log, err = os.Create(dir + ".log"); err != nil { //nolint:gosec // of this run
		return nil, fmt.Errorf("keep the log of %s: %w", config, err)
	}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", config, err)
	}
	c.pid = c.cmd.Process.Pid
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // the log has why
	}()
	if err := c.ready(ctx); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// ready waits until the collector is well, and has all partitions that it reads.
func (c *collector) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		_, err := get(ctx, "http://"+c.env["LOCKSTEP_HEALTH_ENDPOINT"]+"/")
		if err == nil {
			counters, e := c.counters(ctx)
			if e == nil && counters["receiver_job_kafka_partitions"] == c.reads {
				return nil
			}
		}
		select {
		case <-time.After(pollEvery):
		case <-c.ended:
			return fmt.Errorf("start %s: it ended\n%s", c.name, c.tail())
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w\n%s", c.name, errors.Join(ctx.Err(), err), c.tail())
		}
	}
}

// await waits until a counter has a value.
func (c *collector) await(ctx context.Context, name string, want int64) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		got, err := c.counters(ctx)
		if err == nil && got[name] >= want {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("wait for %s of %s: got %d; want %d: %w", name, c.name, got[name], want, errors.Join(ctx.Err(), err))
		}
	}
}

// end ends the collector as an operator does.
func (c *collector) end() error {
	defer func() { _ = c.log.Close() }()
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-c.ended:
		return nil
	case <-time.After(endLimit):
		_ = c.cmd.Process.Kill()
		<-c.ended
		return fmt.Errorf("end %s: it takes more than %s", c.name, endLimit)
	}
}

func (c *collector) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// tail returns the end of the log.
func (c *collector) tail() string {
	const most = 4000
	text, err := os.ReadFile(c.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// counters reads the collector's own metrics, summed over their attributes and without the prefix that all have.
func (c *collector) counters(ctx context.Context) (map[string]int64, error) {
	text, err := get(ctx, c.meter)
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", c.name, err)
	}
	out := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, mine := strings.CutPrefix(lines.Text(), "otelcol_")
		if !mine {
			continue
		}
		end, last := strings.IndexAny(name, "{ "), strings.LastIndexByte(name, ' ')
		if value, err := strconv.ParseFloat(name[last+1:], 64); err == nil {
			out[strings.TrimSuffix(strings.TrimSuffix(name[:end], "_total"), "__spans_")] += int64(value)
		}
	}
	return out, nil
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	return do(request)
}

// post sends a request of OTLP that is compressed with zstd.
func post(ctx context.Context, url string, packet []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(packet))
	if err != nil {
		return fmt.Errorf("post to %s: %w", url, err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "zstd")
	_, err = do(request)
	return err
}

func do(request *http.Request) ([]byte, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the address
	}
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", request.URL, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: got status %d: %s; want 200", request.Method, request.URL, response.StatusCode, body.Bytes())
	}
	return body.Bytes(), nil
}

// discard is an OTLP server that keeps nothing, in the place of Jaeger.
type discard struct {
	ptraceotlp.UnimplementedGRPCServer

	address string
	server  *grpc.Server
	served  sync.WaitGroup
}

func newDiscard() (*discard, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // does not wait
	if err != nil {
		return nil, fmt.Errorf("listen for step traces: %w", err)
	}
	d := &discard{address: l.Addr().String(), server: grpc.NewServer()}
	ptraceotlp.RegisterGRPCServer(d.server, d)
	d.served.Go(func() { _ = d.server.Serve(l) }) // until end
	return d, nil
}

// Export implements ptraceotlp.GRPCServer.
func (*discard) Export(context.Context, ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), nil
}

func (d *discard) end() {
	d.server.Stop()
	d.served.Wait()
}
