// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// trace is that of one rank with one step and one kernel.
func trace(rank int, kernel string) string {
	return fmt.Sprintf(`{"distributedInfo":{"rank":%d,"world_size":131072},"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":1790000000000000,"dur":50},
{"ph":"X","cat":"kernel","name":%q,"pid":0,"tid":7,"ts":1790000000000010,"dur":5,"args":{"stream":7,"correlation":1}}]}`, rank, kernel)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

// replace puts content in the place of a file at once, as a writer does that behaves.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	write(t, path+".new", content)
	require.NoError(t, os.Rename(path+".new", path))
}

// attackedTraces starts a collector that watches a folder, and one file by its name.
func attackedTraces(t *testing.T, settings string) (c *collector, folder string) {
	t.Helper()
	dir := t.TempDir()
	folder = filepath.Join(dir, "job")
	require.NoError(t, os.Mkdir(folder, 0o700))
	c = attacked(t, dir, fmt.Sprintf(`
receivers:
  torch_trace: {include: ['%[1]s', '%[1]s/named'], mode: watch, poll_interval: 100ms%[2]s}`, folder, settings),
		"  pipelines: {traces: {receivers: [torch_trace], processors: [memory_limiter], exporters: [file]}}")
	return c, folder
}

func tracesSurvive(c *collector, folder, attack string, tries int) {
	c.t.Helper()
	replace(c.t, filepath.Join(folder, "good.json"), []byte(trace(131071, "good_kernel")))
	c.receives("good_kernel")
	counted := c.reasons("receiver_torch_trace_files_failed")
	if n := c.count("receiver_torch_trace_files_ignored"); n > 0 {
		counted += "; files beyond max_files are counted at each look"
	}
	if skipped := c.reasons("receiver_torch_trace_events_skipped"); skipped != "" {
		counted += "; events: " + skipped
	}
	c.survives("torch_trace", attack, tries, strings.TrimPrefix(counted, "; "))
}

// strange makes a file that is not regular.
func strange(t *testing.T, path string, kind int) {
	t.Helper()
	link := func(to string) error { return os.Symlink(to, path) }
	var err error
	switch kind % 9 {
	case 0:
		err = syscall.Mkfifo(path, 0o666)
	case 1:
		err = link("/dev/zero")
	case 2:
		err = link("/proc/kmsg")
	case 3:
		err = link("/dev/random")
	case 4:
		err = os.Mkdir(path, 0o700)
	case 5:
		err = link(path)
	case 6:
		err = link("nothing/at/all")
	case 7:
		err = syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0)
	default:
		err = link("/proc/self/mem")
	}
	require.NoError(t, err)
}

func TestTorchTrace_NoRegularFiles(t *testing.T) {
	c, folder := attackedTraces(t, "")
	strange(t, filepath.Join(folder, "named"), 0)
	const tries = 900
	for i := range tries {
		strange(t, filepath.Join(folder, fmt.Sprintf("rank%d.json", i)), i)
	}
	tracesSurvive(c, folder, "pipes, devices, sockets, folders and links that loop in the place of traces; a pipe that include names", tries+1)
}

func TestTorchTrace_Swapped(t *testing.T) {
	c, folder := attackedTraces(t, "")
	const tries = 3000
	path, aside := filepath.Join(folder, "named"), filepath.Join(folder, "aside")
	for i := range tries {
		if i%10 == 0 { // long enough for two looks
			write(t, aside, []byte(trace(1, fmt.Sprintf("kernel_%d", i))))
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.Rename(aside, path))
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond / 10)
			continue
		}
		require.NoError(t, os.RemoveAll(path))
		strange(t, path, i)
	}
	require.NoError(t, os.RemoveAll(path))
	tracesSurvive(c, folder, "a trace that becomes a pipe, a device or a link between two looks", tries)
}

func TestTorchTrace_WhileWritten(t *testing.T) {
	c, folder := attackedTraces(t, "")
	const tries = 300
	head := []byte(trace(1, "half"))
	for i := range tries {
		f, err := os.OpenFile(filepath.Join(folder, fmt.Sprintf("rank%d.json", i%20)), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
		require.NoError(t, err)
		for range 20 {
			_, err = f.Write(head[:rand.IntN(len(head))])
			require.NoError(t, err)
		}
		require.NoError(t, f.Truncate(int64(rand.IntN(4*len(head)))))
		require.NoError(t, f.Close())
		time.Sleep(10 * time.Millisecond)
	}
	for i := range tries { // a good trace, cut at each place in turn
		write(t, filepath.Join(folder, fmt.Sprintf("rank%d.json", 1000+i)), head[:i*len(head)/tries])
	}
	tracesSurvive(c, folder, "traces that grow, shrink and change while they are read; one cut at each of 300 places", 2*tries)
}

func TestTorchTrace_ManyFiles(t *testing.T) {
	c, folder := attackedTraces(t, ", max_files: 10000")
	const tries = 100_000
	for i := range tries {
		write(t, filepath.Join(folder, fmt.Sprintf("rank%d.json", i)), []byte("{}"))
	}
	require.NoError(t, os.Rename(folder, folder+"-aside"))
	require.NoError(t, os.Mkdir(folder, 0o700))
	tracesSurvive(c, folder, "100,000 files, and the folder renamed under the watcher", tries)
}

func TestTorchTrace_Names(t *testing.T) {
	c, folder := attackedTraces(t, "")
	names := []string{"a\nb rank1.json", "rank2\xff\xfe.json", "rank\x1b[31m3.json", strings.Repeat("r", 240) + "4.json", "-rf rank5.json", "rank99999999999999999999.json", "%s%n rank6.json"}
	for i, name := range names {
		write(t, filepath.Join(folder, name), []byte(trace(i+1, "named_\x00")))
	}
	tracesSurvive(c, folder, "names with line breaks, escapes, bytes that are no UTF-8, and numbers of 20 digits", len(names))
}

func TestTorchTrace_OthersFile(t *testing.T) {
	c, folder := attackedTraces(t, "")
	secret := filepath.Join(c.dir, "secret")
	write(t, secret, []byte("root:$6$secret-of-another-user:19000"))
	require.NoError(t, os.Link(secret, filepath.Join(folder, "rank1.json")))
	require.NoError(t, os.Symlink(secret, filepath.Join(folder, "rank2.json")))
	c.eventually("both left out", func() bool { return c.count("receiver_torch_trace_files_failed", `reason="unreadable"`) >= 2 })
	require.NotContains(t, c.said.String(), "secret-of-another-user", "a file that is no trace is not in the log")
	require.False(t, c.received("secret-of-another-user"))
	tracesSurvive(c, folder, "a hard and a symbolic link to a file outside of the folder: no word of it gets out", 2)
}

func TestTorchTrace_Bombs(t *testing.T) {
	c, folder := attackedTraces(t, ", max_file_bytes: 4294967296")
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	require.NoError(t, err)
	_, err = io.WriteString(z, `{"x":"`)
	require.NoError(t, err)
	zeroes := make([]byte, 1<<20)
	for range 8 << 10 {
		_, err = z.Write(zeroes)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	write(t, filepath.Join(folder, "rank1.json.gz"), packed.Bytes())
	for i, head := range []string{`{"x":"`, `{"traceEvents":["`, `{"traceEvents":[{"ph":"X","name":"`} {
		path := filepath.Join(folder, fmt.Sprintf("rank%d.json", 2+i))
		write(t, path, []byte(head))
		require.NoError(t, os.Truncate(path, 15<<40)) // of holes
	}
	write(t, filepath.Join(folder, "rank5.json"), []byte(`{"traceEvents":[{"args":`+strings.Repeat("[", 64<<20)))
	c.eventually("all left out", func() bool { return c.count("receiver_torch_trace_files_failed") >= 5 })
	tracesSurvive(c, folder, fmt.Sprintf("8 GiB of zeroes packed to %d MiB, three files of 15 TiB of holes, 64 Mi open brackets", packed.Len()>>20), 5)
}

func TestTorchTrace_Events(t *testing.T) {
	c, folder := attackedTraces(t, "")
	const events = 1_000_000
	var b strings.Builder
	b.WriteString(`{"distributedInfo":{"rank":1},"traceEvents":[{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":1,"dur":50}`)
	odd := []string{"1e300", "-1e300", "9223372036854775807", "-9223372036854775808", "1e-300", "0.1", "18446744073709551616"}
	for i := range events {
		at := fmt.Sprint(1790000000000000 + i)
		if i%100 == 0 {
			at = odd[i/100%len(odd)]
		}
		fmt.Fprintf(&b, `,{"ph":"X","cat":"kernel","name":"same","pid":0,"tid":7,"ts":%s,"dur":%s,"args":{"correlation":%d}}`, at, odd[i%len(odd)], i)
	}
	b.WriteString("]}")
	write(t, filepath.Join(folder, "rank1.json"), []byte(b.String()))
	b.Reset()
	b.WriteString(`{"distributedInfo":{"rank":2},"traceEvents":[{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":1,"dur":50}`)
	for i := range 200_000 {
		fmt.Fprintf(&b, `,{"ph":"X","cat":"kernel","name":"other_%d","pid":0,"tid":7,"ts":%d,"dur":1}`, i, 1790000000000000+i)
	}
	b.WriteString("]}")
	write(t, filepath.Join(folder, "rank2.json"), []byte(b.String()))
	tracesSurvive(c, folder, "1,000,000 events of one name with impossible times, 200,000 events with a name each", events+200_000)
}
