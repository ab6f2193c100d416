// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func attackedLogs(t *testing.T) (c *collector, folder string) {
	t.Helper()
	dir := t.TempDir()
	folder = filepath.Join(dir, "logs")
	require.NoError(t, os.Mkdir(folder, 0o700))
	c = attacked(t, dir, fmt.Sprintf(`
receivers:
  nccl_inspector: {include: ['%s'], job_id: job, poll_interval: 50ms, world_wait: 0s}`, folder),
		"  pipelines: {traces: {receivers: [nccl_inspector], processors: [memory_limiter], exporters: [file]}}")
	return c, folder
}

// record is one operation of one rank of two.
func record(pid, number int) string {
	at := int64(1790000000000000) + int64(number)*10_000
	return fmt.Sprintf(`{"header":{"id":"0xabc","rank":%d,"n_ranks":2,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0",`+
		`"dump_timestamp_us":%d,"hostname":"n","pid":%d},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1000,"coll_exec_time_us":1000,`+
		`"coll_timing_source":"kernel_gpu","coll_algobw_gbs":1.0,"coll_busbw_gbs":1.5,"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,`+
		`"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]}}}`+"\n",
		pid%2, at+5000, pid, number, at, at+5, at+10, at+1000, at+1000)
}

func logsSurvive(c *collector, folder, attack string, tries int) {
	c.t.Helper()
	before := c.count("receiver_nccl_inspector_lines_read")
	var lines strings.Builder
	for i := range 10 {
		lines.WriteString(record(4242, i))
	}
	write(c.t, filepath.Join(folder, "n-pid4242.log"), []byte(lines.String()))
	c.eventually("lines of a process that behaves", func() bool { return c.count("receiver_nccl_inspector_lines_read") >= before+10 })
	counted := ""
	if faults := c.reasons("receiver_nccl_inspector_faults"); faults != "" {
		counted = "faults: " + faults
	}
	if odd := c.reasons("receiver_nccl_inspector_oddities"); odd != "" {
		counted += "; oddities: " + odd
	}
	c.survives("nccl_inspector", attack, tries, strings.TrimPrefix(counted, "; "))
}

func TestInspector_NoRegularFiles(t *testing.T) {
	c, folder := attackedLogs(t)
	const tries = 900
	for i := range tries {
		strange(t, filepath.Join(folder, fmt.Sprintf("n-pid%d.log", i)), i)
	}
	path := filepath.Join(folder, "n-pid1000.log")
	for i := range tries {
		require.NoError(t, os.RemoveAll(path))
		if i%10 == 0 {
			write(t, path, []byte(record(1000, i)))
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
			continue
		}
		strange(t, path, i)
	}
	require.NoError(t, os.RemoveAll(path))
	logsSurvive(c, folder, "pipes, devices, sockets, folders and links in the place of logs, and one that becomes each of them", 2*tries)
}

func TestInspector_Rotated(t *testing.T) {
	c, folder := attackedLogs(t)
	const tries = 500
	path := filepath.Join(folder, "n-pid1.log")
	for i := range tries {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		text := record(1, i)
		for range 5 {
			_, err = f.WriteString(text[:rand.IntN(len(text))])
			require.NoError(t, err)
		}
		_, err = f.WriteString("\n" + text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		switch i % 5 {
		case 0:
			require.NoError(t, os.Truncate(path, 0))
		case 1:
			require.NoError(t, os.Rename(path, filepath.Join(folder, fmt.Sprintf("n-pid1-%d.log", i%20))))
		case 2:
			require.NoError(t, os.Truncate(path, rand.Int64N(10000)))
		case 3:
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			write(t, filepath.Join(folder, fmt.Sprintf("n-pid1-copy%d.log", i%20)), b)
		default:
			require.NoError(t, os.Remove(path))
		}
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	logsSurvive(c, folder, "logs cut, renamed, copied and removed in the midst of a line", tries)
}

func TestInspector_Content(t *testing.T) {
	c, folder := attackedLogs(t)
	endless := filepath.Join(folder, "n-pid1.log")
	write(t, endless, []byte(`{"header":{"id":"`))
	require.NoError(t, os.Truncate(endless, 8<<30)) // of holes: no line ends
	binary := make([]byte, 32<<20)
	for i := range binary {
		binary[i] = byte(rand.Uint32())
	}
	write(t, filepath.Join(folder, "n-pid2.log"), binary)
	deep := strings.Repeat(`{"coll_perf":`, 50_000) + "\n"
	write(t, filepath.Join(folder, "n-pid3.log"), []byte(strings.Repeat(deep, 20)))
	var odd strings.Builder
	good := record(4, 1)
	const lines = 20_000
	for range lines {
		b := []byte(good)
		for range 1 + rand.IntN(4) {
			b[rand.IntN(len(b)-1)] = byte(' ' + rand.IntN(90))
		}
		odd.Write(b)
	}
	write(t, filepath.Join(folder, "n-pid4.log"), []byte(odd.String()))
	var ranks strings.Builder
	for i := range lines {
		ranks.WriteString(strings.Replace(good, `"0xabc"`, fmt.Sprintf(`"0x%x"`, i), 1))
	}
	write(t, filepath.Join(folder, "n-pid5.log"), []byte(ranks.String()))
	tries := 1 + bytes.Count(binary, []byte("\n")) + 20 + 2*lines
	c.eventually("all lines", func() bool {
		return c.count("receiver_nccl_inspector_lines_read")+c.count("receiver_nccl_inspector_faults") >= float64(tries)
	})
	logsSurvive(c, folder, "a line of 8 GiB, 32 MiB of noise, objects 50,000 deep, 20,000 damaged records, 20,000 communicators", tries)
}
