// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// cell is a cell of CSV.
func cell(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }

// object writes an object of JSON.
func object(members map[string]any) string {
	out, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// keepers are the ways in which collectors keep a line of a process.
var keepers = map[string]func(rank, n int64, line string) string{
	"journalctl -o json": func(r, n int64, l string) string {
		return object(map[string]any{"__REALTIME_TIMESTAMP": fmt.Sprint(1700000000000000 + n), "_HOSTNAME": fmt.Sprintf("node-%d", r/2), "_PID": fmt.Sprint(4000 + r), "SYSLOG_IDENTIFIER": "python3", "PRIORITY": "6", "MESSAGE": l})
	},
	"journalctl, bytes": func(r, _ int64, l string) string {
		var b []int
		for _, c := range []byte("\x1b[31m" + l) {
			b = append(b, int(c))
		}
		return object(map[string]any{"_HOSTNAME": fmt.Sprintf("node-%d", r/2), "_PID": fmt.Sprint(4000 + r), "MESSAGE": b})
	},
	"journalctl -o short-iso": func(r, _ int64, l string) string {
		return fmt.Sprintf("2026-11-16T10:00:00+0000 node-%d python3[%d]: %s", r/2, 4000+r, l)
	},
	"syslog": func(r, _ int64, l string) string {
		return fmt.Sprintf("Nov 16 10:00:00 node-%d torchrun[%d]: %s", r/2, 4000+r, l)
	},
	"Docker, with spaces": func(_, _ int64, l string) string {
		return fmt.Sprintf(`{"log": %s, "stream": "stderr", "time": "2026-11-20T10:00:00.1Z"}`, quoted(l+"\n"))
	},
	"fluent-bit": func(r, _ int64, l string) string {
		return fmt.Sprintf(`{"log":%s,"stream":"stderr","kubernetes":{"pod_name":"job-%d","container_name":"torch"}}`, quoted(l), r)
	},
	"fluent-bit, containerd": func(r, _ int64, l string) string {
		return object(map[string]any{"time": "2026-11-20T10:00:00.1Z", "stream": "stderr", "logtag": "F", "message": l, "kubernetes": map[string]any{"pod_name": fmt.Sprintf("job-%d", r)}})
	},
	"vector": func(r, _ int64, l string) string {
		return object(map[string]any{"source_type": "kubernetes_logs", "file": "/var/log/x", "message": l, "kubernetes": map[string]any{"pod_name": fmt.Sprintf("job-%d", r), "pod_labels": map[string]any{"step": "a"}}})
	},
	"logcli -o jsonl": func(r, n int64, l string) string {
		return object(map[string]any{"labels": map[string]any{"pod": fmt.Sprintf("job-%d", r)}, "line": l, "timestamp": fmt.Sprintf("2026-11-16T10:00:%02d.%09dZ", n/1000, n%1000)})
	},
}

func quoted(value any) string {
	out, _ := json.Marshal(value)
	return string(out)
}

// entry is a line of a rank.
type entry struct {
	rank int64
	line string
}

// mergedJob are the lines of a job of six ranks: rank 4 ran out of memory. Old lines have no mark of the rank, but one
// of each process has.
func mergedJob(version string) (out []entry) {
	for r := range int64(6) {
		text := "step 40 loss 2.1\n" + versions[version](inDefault(r))
		if r == 4 {
			text = "step 40 loss 2.1\n" + fmt.Sprintf(outOfMemory, 4, 4)
		}
		for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			out = append(out, entry{r, l})
		}
	}
	return out
}

// However a collector keeps lines, they are read to the same answer.
func TestJudge_LinesOfCollectors_AreReadAlike(t *testing.T) {
	for name, keep := range keepers {
		for _, version := range []string{"2.3", "2.14"} {
			t.Run(name+" "+version, func(t *testing.T) {
				var b strings.Builder
				for n, e := range mergedJob(version) {
					b.WriteString(keep(e.rank, int64(n), e.line) + "\n")
				}
				assert.True(t, Sniff(strings.NewReader(b.String())))
				if b.String()[0] == '{' {
					assert.True(t, IsCollected([]byte(b.String())))
					assert.True(t, IsCollected([]byte(b.String()[:150])), "the head of a line")
				}
				f := assertRoot(t, logs{"job.json": b.String()}.judge(t, Options{WorldSize: 6}), 4, model.ClassProcessDead, "all_reduce 41")
				assert.Contains(t, evidence.Encode(f.Evidence), "CUDA out of memory")
			})
		}
	}
}

// exports are documents with lines of all ranks; newest: they begin with the last one.
var exports = map[string]func(entries []entry, newest bool) string{
	"Grafana, JSON": func(entries []entry, newest bool) string {
		var all []string
		for n, e := range entries {
			all = append(all, object(map[string]any{"line": e.line, "timestamp": fmt.Sprint(1700000000000000000 + n), "date": "2026-11-16T10:00:00Z", "fields": map[string]any{"pod": fmt.Sprintf("job-%d", e.rank)}}))
		}
		if newest {
			slices.Reverse(all)
		}
		return "[" + strings.Join(all, ",") + "]"
	},
	"Grafana, CSV": func(entries []entry, newest bool) string {
		var all []string
		for n, e := range entries {
			all = append(all, fmt.Sprintf(`%s,2026-11-16T10:00:00.%03dZ,%s`, cell(fmt.Sprintf(`{"pod":"job-%d"}`, e.rank)), n, cell(e.line)))
		}
		if newest {
			slices.Reverse(all)
		}
		return "labels,Time,Line\n" + strings.Join(all, "\n") + "\n"
	},
	"CloudWatch, CSV": func(entries []entry, newest bool) string {
		var all []string
		for n, e := range entries {
			all = append(all, fmt.Sprintf(`2026-11-16 10:00:00.%03d,%s`, n, cell(e.line)))
		}
		if newest {
			slices.Reverse(all)
		}
		return "@timestamp,@message\n" + strings.Join(all, "\n") + "\n"
	},
	"Loki": func(entries []entry, newest bool) string {
		values := map[int64][]any{}
		for n, e := range entries {
			values[e.rank] = append(values[e.rank], []any{fmt.Sprint(1700000000000000000 + n), e.line})
		}
		var streams []any
		for r := range int64(6) {
			if newest {
				slices.Reverse(values[r])
			}
			streams = append(streams, map[string]any{"stream": map[string]any{"pod": fmt.Sprintf("job-%d", r)}, "values": values[r]})
		}
		return `{"status":"success","data":{"resultType":"streams","result":` + quoted(streams) + `}}`
	},
	"logcli, newest first": func(entries []entry, newest bool) string {
		var all []string
		for n, e := range entries {
			all = append(all, keepers["logcli -o jsonl"](e.rank, int64(n), e.line))
		}
		if newest {
			slices.Reverse(all)
		}
		return strings.Join(all, "\n") + "\n"
	},
}

// An export of a query is read in the order of its times.
func TestJudge_ExportsOfQueries_AreReadInOrder(t *testing.T) {
	for name, export := range exports {
		for _, newest := range []bool{false, true} {
			t.Run(fmt.Sprint(name, newest), func(t *testing.T) {
				text := export(mergedJob("2.14"), newest)
				assert.True(t, Sniff(strings.NewReader(text)))
				f := assertRoot(t, logs{"job.json": text}.judge(t, Options{WorldSize: 6}), 4, model.ClassProcessDead, "all_reduce 41")
				assert.Contains(t, evidence.Encode(f.Evidence), "CUDA out of memory")

				if name == "CloudWatch, CSV" {
					return // nothing tells of which process a line is
				}
				// An error that steps follow was caught.
				var entries []entry
				for _, e := range mergedJob("2.14") {
					if entries = append(entries, e); strings.Contains(e.line, "OutOfMemory") {
						entries = append(entries, entry{4, "batch 16 fits"}, entry{4, "step 41 loss 2.0"})
					}
				}
				assertRoot(t, logs{"job.json": export(entries, newest)}.judge(t, Options{WorldSize: 6}), 4, model.ClassNotScheduled, "all_reduce 41")
			})
		}
	}
}

// A document that is cut is read in part, and refused.
func TestSet_CutExports_AreRefused(t *testing.T) {
	for _, name := range []string{"Grafana, JSON", "Loki"} {
		text := exports[name](mergedJob("2.14"), false)
		err := NewSet().Read(File{Path: "a.json", Rank: -1}, strings.NewReader(text[:len(text)-80]))
		require.ErrorIs(t, err, errDocument, name)
		assert.Contains(t, err.Error(), "is cut")
	}
}

// What does not fit is refused, not left out in silence.
func TestExport_BeyondTheLimit_IsRefused(t *testing.T) {
	for name, export := range exports {
		if name == "logcli, newest first" {
			continue // one object a line is not held, unless it is turned round
		}
		text := export(mergedJob("2.14"), true)
		_, ok, err := exportOf(text, int64(len(text)))
		require.True(t, ok)
		require.NoError(t, err, name)
		_, _, err = exportOf(text, int64(len(text)/2))
		require.ErrorIs(t, err, errDocument, name)
	}
}

func exportOf(text string, limit int64) ([]collected, bool, error) {
	return export(bufio.NewReaderSize(strings.NewReader(text), maxLine), limit)
}

// Text behind a document is not lost in silence, and an array that a program prints is a line.
func TestSet_TextBehindADocument_IsNotLost(t *testing.T) {
	text := exports["Grafana, JSON"](mergedJob("2.14"), false) + "\nstep 41\n"
	require.ErrorIs(t, NewSet().Read(File{Path: "a.json", Rank: -1}, strings.NewReader(text)), errDocument)

	l := files(versions["2.14"], 4, map[int64]string{2: "step 39\n"})
	for name := range l {
		l[name] = "[{\"lr\": 0.1}, {\"lr\": 0.2}]\n" + l[name]
	}
	assertRoot(t, l.judge(t, Options{WorldSize: 4}), 2, model.ClassNotScheduled, "all_reduce 41")
}

// What a program writes as JSON itself stays a line.
func TestCollected_ObjectsOfPrograms_AreLines(t *testing.T) {
	for _, line := range []string{
		`{"step": 40, "loss": 2.1}`, `{"message": "train", "time": "10:00", "step": 40}`, `{"msg": "x"}`, `{"log": 3, "stream"`, `{}`, `{"a": {"log": "x"}}`,
	} {
		_, ok := collectedOf([]byte(line))
		assert.False(t, ok, line)
		assert.False(t, IsCollected([]byte(line+"\n")), line)
	}
	for _, head := range []string{"a,b\n1,2\n", "step,loss,message of the day, and more\n", "[rank0]: x\n", "[{'loss': 2.1}]\n", "step 1, time 3, loss\n"} {
		_, ok := columnsOf([]byte(head))
		assert.False(t, ok, head)
		assert.False(t, isExport([]byte(head)), head)
	}
}

// cutBehindText is a reader of a compressed file that ends in the middle.
func cutBehindText(text string) io.Reader {
	return io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF))
}

// A log that is cut accuses no rank by what it lacks.
func TestJudge_LogThatIsCut_IsNoSilence(t *testing.T) {
	for name, text := range map[string]string{
		"silent": "step 40 loss 2.1\n", "an error": "step 40\nTraceback (most recent call last):\nValueError: bad sample\n", "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSet()
			for r := range int64(4) {
				f := File{Path: fmt.Sprintf("rank%d.log", r), Rank: r, Certain: true}
				if r != 2 {
					require.NoError(t, s.Read(f, strings.NewReader(versions["2.14"](inDefault(r)))))
					continue
				}
				require.ErrorIs(t, s.Read(f, cutBehindText(text)), ErrCut)
			}
			r := s.Judge(Options{Job: "job", WorldSize: 4, Engine: desync.NewDefaultConfig()})
			require.Len(t, r.Roots, 1)
			assert.Empty(t, r.Roots[0].Finding.Ranks)
			assert.Equal(t, []int64{2}, r.Roots[0].Finding.Candidates)
			assert.Contains(t, evidence.Encode(r.Roots[0].Finding.Evidence), "rank2.log is cut")
		})
	}
}
