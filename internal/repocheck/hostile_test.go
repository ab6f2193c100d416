// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/epoch/bilateral"
	"github.com/lockstep-otel/lockstep/internal/fleet"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/inspector"
	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/ras"
	"github.com/lockstep-otel/lockstep/internal/safetensors"
	"github.com/lockstep-otel/lockstep/internal/tier"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// object is a document whose value at a key is hostile, for readers of objects.
func object(key, value string) []byte { return []byte(`{"` + key + `": ` + value) }

// parquetFile is a file of these metadata alone.
func parquetFile(metadata []byte) []byte {
	b := append([]byte(columns.Magic), metadata...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(metadata))), columns.Magic...)
}

// decoder is one of what other programs write, with what it is given.
type decoder struct {
	inputs [][]byte
	decode func(t *testing.T, data []byte) error
	// factor is how many bytes of memory it may take for one of the input; 0: 16.
	factor uint64
}

// pickleFactor: an opcode of one byte makes a list, of 24 bytes and 16 on the stack, in arrays that grow. Limits of
// the reading end it at 2^20 on the stack.
const pickleFactor = 256

// decoders are given so many brackets within one another, and a text of as many bytes.
func decoders(deep int) map[string]decoder {
	brackets, long := strings.Repeat("[", deep), `"`+strings.Repeat("x", deep)+`"`
	return map[string]decoder{
		"kineto": {
			inputs: [][]byte{object("traceEvents", brackets), object("distributedInfo", brackets), object("traceEvents", `[{"ph": "X", "args": `+brackets)},
			decode: func(t *testing.T, data []byte) error {
				t.Helper()
				_, err := kineto.Parse(t.Context(), bytes.NewReader(data), "rank0.json", kineto.DefaultOptions())
				return err
			},
		},
		"columns": {
			inputs: [][]byte{
				parquetFile(bytes.Repeat([]byte{0x1c}, deep)), parquetFile(bytes.Repeat([]byte{0x19}, deep)), // structures, lists
				parquetFile([]byte{0x29, 0xfc, 0xff, 0xff, 0xff, 0x07}),            // a schema of 2^31 columns
				parquetFile(append([]byte{0x48, 0xff, 0xff, 0xff, 0x07}, long...)), // a text
			},
			decode: func(_ *testing.T, data []byte) error {
				_, err := columns.Open(bytes.NewReader(data), int64(len(data)))
				return err
			},
		},
		"inspector": {
			inputs: [][]byte{object("header", brackets), object("coll_perf", brackets), object("header", long)},
			decode: func(_ *testing.T, data []byte) error {
				var p inspector.Parser
				var errs []error
				s := inspector.NewSplitter(1<<20, inspector.SplitState{})
				s.Feed(append(data, '\n'), func(l inspector.Line) {
					_, faults := p.Parse(&l)
					for _, f := range faults {
						errs = append(errs, errors.New(f.What))
					}
				})
				return errors.Join(errs...)
			},
		},
		"ras": {
			inputs: [][]byte{object("communicators", brackets), object("else", brackets), object("else", long)},
			decode: func(_ *testing.T, data []byte) error {
				_, err := ras.Parse(bytes.NewReader(data), 1<<26)
				return err
			},
		},
		"flight recorder, JSON": {
			inputs: [][]byte{object("entries", brackets), object("else", brackets), []byte(brackets)},
			decode: func(_ *testing.T, data []byte) error {
				_, err := flightrecorder.Decode(data, flightrecorder.DefaultOptions())
				return err
			},
		},
		"flight recorder, pickle": {
			inputs: [][]byte{[]byte("\x80\x02" + strings.Repeat("]", deep) + strings.Repeat("a", deep-1) + "."), []byte("\x80\x02" + strings.Repeat("(", deep)), []byte("\x80\x02" + strings.Repeat("]q\x00", deep))},
			factor: pickleFactor,
			decode: func(_ *testing.T, data []byte) error {
				_, err := flightrecorder.Decode(data, flightrecorder.DefaultOptions())
				return err
			},
		},
		"nvidia-smi": {
			inputs: [][]byte{[]byte(strings.Repeat("<a>", deep)), []byte("<nvidia_smi_log><driver_version>" + long)},
			decode: func(_ *testing.T, data []byte) error {
				_, err := fleet.ParseSMI(data)
				return err
			},
		},
		"commit": {
			inputs: [][]byte{object("slots", brackets), object("job", long), object("else", brackets)},
			decode: func(_ *testing.T, data []byte) error {
				_, _, _, err := bilateral.ParseMessage(data)
				return err
			},
		},
		"peers": {
			inputs: [][]byte{[]byte(brackets), []byte("[" + long)},
			decode: func(t *testing.T, data []byte) error {
				t.Helper()
				path := filepath.Join(t.TempDir(), "peers")
				require.NoError(t, os.WriteFile(path, data, 0o600))
				l, err := mesh.NewFile(path, 1).Members(t.Context())
				return errors.Join(append(l.Problems, err)...)
			},
		},
		"safetensors": {
			inputs: [][]byte{object("a", brackets), object("__metadata__", brackets), object("a", long), object("__metadata__", long)},
			decode: func(_ *testing.T, data []byte) error {
				file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(data))), data...)
				_, err := safetensors.Read(bytes.NewReader(file), int64(len(file)), safetensors.Limits{})
				return err
			},
		},
		"timeline's state": {
			inputs: [][]byte{object("clocks", brackets), object("else", brackets)},
			decode: func(_ *testing.T, data []byte) error { return timeline.New(timeline.DefaultOptions()).Restore(data) },
		},
		"epochs' state": {
			inputs: [][]byte{object("jobs", brackets), object("else", brackets)},
			decode: func(_ *testing.T, data []byte) error { return epoch.New(epoch.Config{}).Restore(data) },
		},
	}
}

// depth is how many values lie within one another in hostile input: more than encoding/json takes.
func depth(t *testing.T) int {
	t.Helper()
	return tier.N(t, 100_000, 1_000_000)
}

func TestDecoders_HostileInput_IsAnErrorAndCostsLittle(t *testing.T) {
	for name, of := range decoders(depth(t)) {
		t.Run(name, func(t *testing.T) {
			for i, data := range of.inputs {
				err := costsLittle(t, data, cmp.Or(of.factor, 16), func() error { return of.decode(t, data) })
				if assert.Error(t, err, "input %d", i) {
					assert.Less(t, len(err.Error()), 1000, "input %d: the text of the input is not repeated", i)
					t.Logf("%.300v", err)
				}
			}
		})
	}
}

// Each file of a save that is JSON or a pickle is hostile once. Then the save is not complete, or package
// ckpt does not read the file.
func TestCheckpoints_HostileFiles_AreProblems(t *testing.T) {
	deep, read := depth(t), 0
	jobs := ckptsim.Jobs()
	for i := range jobs {
		dir := t.TempDir()
		require.NoError(t, jobs[i].Save(100, nil).Make(t.Context(), dir, func(ckptsim.Op) {}))
		for path, was := range documents(t, dir) {
			for _, data := range [][]byte{object("a", strings.Repeat("[", deep)), []byte("\x80\x02" + strings.Repeat("]", deep))} {
				require.NoError(t, os.WriteFile(path, data, 0o600))
				err := costsLittle(t, data, pickleFactor, func() error { return problems(ckpt.Read(t.Context(), os.DirFS(dir), ckpt.Options{})) })
				if err != nil {
					read++
					assert.Less(t, len(err.Error()), 100_000, "the text of %s is not repeated", path)
				}
			}
			require.NoError(t, os.WriteFile(path, was, 0o600))
		}
	}
	assert.Greater(t, read, 50, "of the layouts that there are")
}

// documents are the files below a folder that are JSON or a pickle.
func documents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if len(text) > 0 && (text[0] == '{' || text[0] == '[' || text[0] == 0x80) {
			found[path] = text
		}
		return err
	}))
	return found
}

func problems(root *ckpt.Root) error {
	var errs []error
	add := func(of []ckpt.Problem) {
		for _, p := range of {
			errs = append(errs, errors.New(p.File+": "+p.What))
		}
	}
	add(root.Problems)
	for _, s := range root.Saves {
		add(s.Problems)
	}
	return errors.Join(errs...)
}

// costsLittle fails where reading takes more bytes of memory for one of the input than a factor, and some MiB.
func costsLittle(t *testing.T, data []byte, factor uint64, read func() error) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := read()
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, factor*uint64(len(data))+4<<20, "of %d bytes", len(data))
	return err
}
