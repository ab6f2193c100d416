// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// stuckConfig sends findings to an endpoint, each as soon as it is there, and waits for the answer
// without end.
const stuckConfig = `
receivers:
  torch_trace: {include: [%q], mode: watch, poll_interval: 50ms}
connectors:
  straggler: {deadline: 24h}
  findings:
exporters:
  otlp_grpc: {endpoint: %q, tls: {insecure: true}, timeout: 0s, sending_queue: {enabled: false}}
service:
  pipelines:
    traces: {receivers: [torch_trace], exporters: [straggler]}
    logs/raw: {receivers: [straggler], exporters: [findings]}
    logs: {receivers: [findings], exporters: [otlp_grpc]}
  telemetry: {metrics: {level: none}, logs: {level: warn}}
`

// stopsWithin is how long SIGTERM may take: one component of ours waits five seconds for its next
// one, and a machine stalls.
const stopsWithin = 15 * time.Second

// A collector whose backend accepts connections and never answers ends when it is asked to.
func TestRun_BackendNeverAnswers_SIGTERMEndsIt(t *testing.T) {
	if path := os.Getenv("LOCKSTEP_TEST_STUCK"); path != "" {
		os.Exit(Main([]string{"run", path}, os.Stdout, os.Stderr))
	}
	if !tier.Full(t) {
		t.Skip("takes five seconds; the tests of each component show the same")
	}
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	reached := make(chan error, 1)
	go func() { reached <- awaitCall(t, silent) }()
	path := filepath.Join(t.TempDir(), "stuck.yaml")
	config := fmt.Sprintf(stuckConfig, testdata.Recording(t, "slow"), silent.Addr().String())
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))

	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRun_BackendNeverAnswers_SIGTERMEndsIt$")
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_STUCK="+path)
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	select {
	case err := <-reached:
		require.NoError(t, err)
	case err := <-ended:
		require.Fail(t, "it ended by itself", "%v: %s", err, said.String())
	case <-time.After(time.Minute):
		require.Fail(t, "no finding is sent")
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-ended:
		assert.NotContains(t, said.String(), "panic")
	case <-time.After(stopsWithin):
		require.Fail(t, "it does not end")
	}
}

// HTTP/2, RFC 9113: what a client says first, the length of a frame's header, and types of frames.
const (
	prefaceBytes = 24
	frameHeader  = 9
	typeHeaders  = 1
	typeSettings = 4
)

// awaitCall takes a connection of a gRPC client, and returns when the client has made a call. The
// call is never answered.
func awaitCall(t *testing.T, from net.Listener) error {
	t.Helper()
	conn, err := from.Accept()
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte{3: typeSettings, frameHeader - 1: 0}); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, conn, prefaceBytes); err != nil {
		return err
	}
	for header := make([]byte, frameHeader); ; {
		if _, err := io.ReadFull(conn, header); err != nil {
			return err
		}
		if header[3] == typeHeaders {
			return nil
		}
		length := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
		if _, err := io.CopyN(io.Discard, conn, length); err != nil {
			return err
		}
	}
}
