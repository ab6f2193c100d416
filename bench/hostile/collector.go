// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	readyLimit = time.Minute
	stopLimit  = time.Minute
)

// collector is a process of the collector with a published configuration, and what it
// writes to.
type collector struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // then

	dir        string
	otlp       string // where it receives OTLP over gRPC
	prometheus string // metrics of jobs
	telemetry  string // its own metrics
	pprof      string
	findings   string
	events     string
	rings      string // directory
	jaeger     *sink
}

// startCollector starts it on free ports, and waits until its health check answers.
// Its limits are as published, but for those in lower.
func startCollector(ctx context.Context, program, config string, lower limits) (*collector, error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return nil, err
	}
	c := &collector{
		dir: dir, done: make(chan struct{}),
		findings: filepath.Join(dir, "findings.jsonl"), events: filepath.Join(dir, "events.jsonl"), rings: filepath.Join(dir, "rings"),
	}
	if err := c.start(ctx, program, config, lower); err != nil {
		return nil, errors.Join(fmt.Errorf("start collector: %w", err), c.stop())
	}
	return c, nil
}

func (c *collector) start(ctx context.Context, program, config string, lower limits) error {
	if err := os.Mkdir(c.rings, 0o700); err != nil {
		return err
	}
	ports, err := freePorts(9)
	if err != nil {
		return err
	}
	c.otlp, c.prometheus, c.telemetry, c.pprof = ports[0], ports[2], ports[4], ports[7]
	if c.jaeger, err = startSink(ctx, ports[8]); err != nil {
		return err
	}
	more, err := overlay(config, c.pprof, lower)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(c.dir, "collector.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	_, telemetryPort, _ := net.SplitHostPort(c.telemetry)
	c.cmd = exec.Command(program, "--config", config, "--config", more) //nolint:noctx // it is stopped by stop, which asks it to end
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.Env = append(os.Environ(),
		"LOCKSTEP_OTLP_GRPC_ENDPOINT="+c.otlp, "LOCKSTEP_OTLP_HTTP_ENDPOINT="+ports[1], "LOCKSTEP_PROMETHEUS_ENDPOINT="+c.prometheus,
		"LOCKSTEP_HEALTH_ENDPOINT="+ports[3], "LOCKSTEP_TELEMETRY_HOST=127.0.0.1", "LOCKSTEP_TELEMETRY_PORT="+telemetryPort,
		"LOCKSTEP_TIMELINE_ENDPOINT="+ports[5], "LOCKSTEP_COMMIT_ENDPOINT="+ports[6], "LOCKSTEP_JAEGER_ENDPOINT="+ports[8],
		"LOCKSTEP_FINDINGS="+c.findings, "LOCKSTEP_EVENTS="+c.events, "LOCKSTEP_SPANS="+filepath.Join(c.dir, "spans.jsonl"),
		"LOCKSTEP_STATE="+filepath.Join(c.dir, "state"), "LOCKSTEP_DIR="+c.rings, "LOCKSTEP_TRACES="+c.rings, "LOCKSTEP_DUMPS="+c.rings,
		"LOCKSTEP_ROOT="+c.dir, "LOCKSTEP_CHECKPOINTS="+c.rings, "LOCKSTEP_QUEUE="+filepath.Join(c.dir, "queue"))
	if err := c.cmd.Start(); err != nil {
		return err
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return c.ready(ctx, "http://"+ports[3]+"/")
}

func (c *collector) ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		if _, err := get(ctx, url); err == nil {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("wait until it is ready: it ended: %w: %s", c.err, c.lastLog())
		case <-ctx.Done():
			return fmt.Errorf("wait until it is ready: %w: %s", ctx.Err(), c.lastLog())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// lastLog returns the end of the collector's log.
func (c *collector) lastLog() string {
	const most = 2000
	b, _ := os.ReadFile(filepath.Join(c.dir, "collector.log"))
	return string(b[max(0, len(b)-most):])
}

// stop ends the process and removes its files.
func (c *collector) stop() error {
	var err error
	if c.cmd != nil && c.cmd.Process != nil {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.done:
		case <-time.After(stopLimit):
			_ = c.cmd.Process.Kill()
			<-c.done
			err = fmt.Errorf("stop collector: it did not end in %v", stopLimit)
		}
	}
	if c.jaeger != nil {
		err = errors.Join(err, c.jaeger.stop())
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// freePorts returns addresses that nothing listens on.
func freePorts(n int) (addresses []string, err error) {
	var held []net.Listener // until all are known
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is local
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		held = append(held, l)
		addresses = append(addresses, l.Addr().String())
	}
	for _, l := range held {
		_ = l.Close()
	}
	return addresses, nil
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("get %s: got %s; want 200", url, answer.Status)
	}
	return body, err
}
