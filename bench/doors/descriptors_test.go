// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDescriptors: connections of a neighbour use up the collector's descriptors, and files
// come meanwhile. Once the connections have gone, all files are read.
func TestDescriptors(t *testing.T) {
	dir := t.TempDir()
	program(t)
	for _, name := range []string{"traces", "dumps", "logs"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	port := freePort(t)
	limited = 128
	defer func() { limited = 0 }()
	c := attacked(t, dir, fmt.Sprintf(`
receivers:
  otlp: {protocols: {http: {endpoint: '127.0.0.1:%d'}}}
  torch_trace: {include: ['%[2]s/traces', '%[2]s/traces/named'], mode: watch, poll_interval: 100ms}
  flight_recorder: {include: ['%[2]s/dumps'], job_id: job, poll_interval: 100ms, settle: 100ms, wait: 200ms}
  nccl_inspector: {include: ['%[2]s/logs', '%[2]s/logs/named'], job_id: job, poll_interval: 100ms, world_wait: 0s}`, port, dir), `  pipelines:
    traces: {receivers: [otlp, torch_trace, nccl_inspector], processors: [memory_limiter], exporters: [file]}
    logs: {receivers: [flight_recorder], processors: [memory_limiter], exporters: [file]}`)
	const connections = 1000
	var held []net.Conn
	defer func() {
		for _, conn := range held {
			conn.Close()
		}
	}()
	address := fmt.Sprintf("127.0.0.1:%d", port)
	c.listens(address)
	for range connections {
		held = append(held, dial(t, address))
	}
	replace(t, filepath.Join(dir, "traces", "rank1.json"), []byte(trace(1, "kernel_of_folder")))
	replace(t, filepath.Join(dir, "traces", "named"), []byte(trace(2, "kernel_of_file")))
	replace(t, filepath.Join(dir, "dumps", "dump_rank_1"), dump(t))
	replace(t, filepath.Join(dir, "logs", "n-pid1.log"), []byte(record(1, 1)))
	replace(t, filepath.Join(dir, "logs", "named"), []byte(record(2, 1)))
	time.Sleep(3 * time.Second) // 30 looks
	require.False(t, c.received("kernel_of"), "there are descriptors left")
	for _, conn := range held {
		conn.Close()
	}
	c.receives("kernel_of_folder")
	c.receives("kernel_of_file")
	c.eventually("the dump", func() bool { return c.count("receiver_flight_recorder_dumps_read") >= 1 })
	c.eventually("both logs", func() bool { return c.count("receiver_nccl_inspector_lines_read") >= 2 })
	c.survives("all files, OTLP HTTP", "1,000 connections with 128 descriptors, while files come: each is read once the connections have gone", connections, "")
}
