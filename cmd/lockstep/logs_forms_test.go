// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func inUTF16(order binary.AppendByteOrder, text string) string {
	var out []byte
	for _, u := range utf16.Encode([]rune("\uFEFF" + text)) {
		out = order.AppendUint16(out, u)
	}
	return string(out)
}

// eachLineOf changes the lines of a text.
func eachLineOf(text string, change func(line string) string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(change(strings.TrimSuffix(line, "\n")))
	}
	return b.String()
}

// inPieces cuts a line as container runtimes do, at so many bytes.
func inPieces(line string, size int, write func(piece string, last bool) string) string {
	var b strings.Builder
	for len(line) > size {
		b.WriteString(write(line[:size], false))
		line = line[size:]
	}
	return b.String() + write(line, true)
}

// dockerLine is a line of Docker's json-file driver.
func dockerLine(text, stream string) string {
	out, err := json.Marshal(map[string]string{"log": text, "stream": stream, "time": "2026-11-20T10:00:00.123456789Z"})
	if err != nil {
		panic(err)
	}
	return string(out) + "\n"
}

func criLine(text, tag string) string {
	return "2026-11-20T10:00:00.123456789Z stderr " + tag + " " + text + "\n"
}

func inGzip(text string) string {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return z.String()
}

func lines(change func(line string) string) func(string) string {
	return func(text string) string { return eachLineOf(text, change) }
}

// forms are the ways in which sites keep logs.
var forms = map[string]func(text string) string{
	"as it is":               func(s string) string { return s },
	"behind NUL bytes":       func(s string) string { return strings.Repeat("\x00", 200<<10) + s },
	"NUL bytes within":       func(s string) string { return "step 0\n" + strings.Repeat("\x00", 70<<10) + s },
	"a NUL behind each line": lines(func(l string) string { return l + "\x00\n" }),
	"UTF-16, little endian":  func(s string) string { return inUTF16(binary.LittleEndian, strings.ReplaceAll(s, "\n", "\r\n")) },
	"UTF-16, big endian":     func(s string) string { return inUTF16(binary.BigEndian, s) },
	"UTF-8 with a mark":      func(s string) string { return "\uFEFF" + s },
	"Windows line ends":      func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"colours": lines(func(l string) string {
		return "\x1b[1;31m" + strings.ReplaceAll(l, "Watchdog caught", "Watchdog\x1b[0m caught") + "\x1b[0m\n"
	}),
	"links of a terminal": lines(func(l string) string {
		return strings.ReplaceAll(l, "Watchdog caught", "\x1b]8;id=1;http://x\x1b\\Watchdog\x1b]8;;\x07 caught") + "\n"
	}),
	"Docker": lines(func(l string) string { return dockerLine(l+"\n", "stderr") }),
	"Docker, in pieces": lines(func(l string) string {
		return inPieces(l+"\n", 90, func(p string, _ bool) string { return dockerLine(p, "stderr") })
	}),
	"Docker, behind a bar": lines(func(l string) string { return dockerLine(" 1%|  | 24/1752 \u2588\r"+l+"\n", "stderr") }),
	"Docker, attributes": lines(func(l string) string {
		return strings.Replace(dockerLine(l+"\n", "stderr"), `,"stream"`, `,"attrs":{"tag":"x"},"stream"`, 1)
	}),
	"Docker, two streams": lines(func(l string) string {
		return inPieces(l+"\n", 90, func(p string, _ bool) string { return dockerLine("loss 2.3\n", "stdout") + dockerLine(p, "stderr") })
	}),
	"containerd": lines(func(l string) string { return criLine(l, "F") }),
	"containerd, in pieces": lines(func(l string) string {
		return inPieces(l, 90, func(p string, last bool) string { return criLine(p, map[bool]string{true: "F", false: "P"}[last]) })
	}),
	"containerd, behind a bar": lines(func(l string) string {
		return criLine(" 1%|\r 2%|\r"+l[:min(len(l), 80)], "P") + criLine(l[min(len(l), 80):], "F")
	}),
	"Docker, UTF-16, gzip": func(s string) string {
		return inGzip(inUTF16(binary.LittleEndian, eachLineOf(s, func(l string) string { return dockerLine(l+"\n", "stderr") })))
	},
	"journalctl -o json": lines(func(l string) string {
		return fmt.Sprintf(`{"__CURSOR":"s=1","_HOSTNAME":"n1","_PID":"41","MESSAGE":%q}`, l) + "\n"
	}),
	"fluent-bit": lines(func(l string) string {
		return fmt.Sprintf(`{"stream": "stderr", "log": %q, "kubernetes": {"pod_name": "job-3"}}`, l) + "\n"
	}),
	"a table": func(s string) string {
		return "Time,Line\n" + eachLineOf(s, func(l string) string { return `2026-11-16T10:00:00Z,"` + strings.ReplaceAll(l, `"`, `""`) + "\"\n" })
	},
	"kubectl": lines(func(l string) string { return "[pod/job-3/torch] 2026-11-20T10:00:00.1Z " + l + "\n" }),
}

// However a site keeps its logs, they are read to the same answer.
func TestAnalyzeLogs_OfEachForm_AreReadAlike(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for r := range 4 {
				text := "step 40 loss 2.1\n" + timedOut(r)
				if r == 2 {
					text = "step 40 loss 2.1\n" + noMemory
				}
				file := fmt.Sprintf("rank%d.log", r)
				if name == "Docker, UTF-16, gzip" {
					file += ".gz"
				}
				putFile(t, form(text), dir, file)
			}
			status, r := analyzeJSON(t, dir)
			assert.Equal(t, exitFindings, status)
			require.Len(t, r.Findings, 1)
			assert.EqualValues(t, 2, r.Findings[0][semconv.FindingRank])
			assert.Equal(t, model.ClassProcessDead, r.Findings[0][semconv.FindingClass])
			assert.Contains(t, r.Findings[0][semconv.FindingEvidence], "CUDA out of memory")
			assert.Equal(t, 4, r.Input.Files)
			assert.Empty(t, r.Problems)
			_, stdout, _ := call("analyze", "--json", dir)
			var all output
			require.NoError(t, json.Unmarshal([]byte(stdout), &all))
			require.Len(t, all.Hangs, 1)
			assert.EqualValues(t, 3, all.Hangs[0].Entries)
			require.Len(t, all.Hangs[0].Roots, 1)
			assert.Equal(t, "all_reduce", all.Hangs[0].Roots[0].Op.Name)
		})
	}
}

// A log of NUL bytes alone has lost its content: it is refused, and its rank is not the one that has
// written nothing.
func TestAnalyzeLogs_OfNULsAlone_AreRefused(t *testing.T) {
	for _, size := range []int{1, 100, 200 << 10} {
		dir := t.TempDir()
		writeLogs(t, dir, "rank%d.log")
		file := putFile(t, strings.Repeat("\x00", size), dir, "rank2.log")
		status, r := analyzeJSON(t, dir)
		assert.Equal(t, exitFindings, status)
		require.Len(t, r.Problems, 1)
		assert.Equal(t, file, r.Problems[0].File)
		assert.Contains(t, r.Problems[0].What, "got NUL bytes alone")
		for _, f := range r.Findings {
			assert.NotEqual(t, model.ClassNotScheduled, f[semconv.FindingClass])
		}
	}
}

// Other files with NUL bytes or of JSON are no logs.
func TestAnalyzeLogs_OtherContentBesideThem_IsNoLog(t *testing.T) {
	dir := t.TempDir()
	writeLogs(t, dir, "rank%d.log")
	putFile(t, strings.Repeat("\x00", 300)+"\x01\x00\x02\x00"+timedOut(5), dir, "rank5.log")
	putFile(t, `{"loss": 3, "log": "`+timedOut(6)+`"}`, dir, "rank6.log")
	_, r := analyzeJSON(t, dir)
	assert.Equal(t, 4, r.Input.Files)
}

// A compressed log that is cut is read up to there, and reported.
func TestAnalyzeLogs_CompressedLogThatIsCut_IsReadInPart(t *testing.T) {
	dir := t.TempDir()
	for r := range 4 {
		text := "step 40 loss 2.1\n" + timedOut(r)
		if r == 2 {
			text = "step 40 loss 2.1\n" + noMemory
		}
		putFile(t, text, dir, fmt.Sprintf("rank%d.log", r))
	}
	status, r := analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status)
	assert.Empty(t, r.Problems)

	whole := inGzip(strings.Repeat("step 40 loss 2.1\n", 100) + timedOut(3) + eachLineOf(strings.Repeat("x\n", 200), func(string) string { return fmt.Sprintf("%x\n", rand.Text()) }))
	putFile(t, whole[:len(whole)-400], dir, "rank3.log.gz")
	require.NoError(t, os.Remove(filepath.Join(dir, "rank3.log")))
	status, r = analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Findings, 1)
	assert.EqualValues(t, 2, r.Findings[0][semconv.FindingRank])
	assert.EqualValues(t, 3, r.Findings[0][semconv.FindingWaitingCount], "the lines in front of the end are used")
	require.Len(t, r.Problems, 1)
	assert.Contains(t, r.Problems[0].What, "is cut")
	assert.Contains(t, r.Problems[0].File, "rank3.log.gz")

	// Alone it decides nothing.
	alone := t.TempDir()
	putFile(t, whole[:len(whole)-400], alone, "rank3.log.gz")
	status, _ = analyzeJSON(t, alone)
	assert.NotEqual(t, 0, status)
}
