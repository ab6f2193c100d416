// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/receiver/rankeventsreceiver/internal/metadatatest"
)

const (
	// inputPatience is how long one input may take; most take 10 ms.
	inputPatience = 30 * time.Second
	// mostAllocated is how many bytes may be allocated for one input. Most need 5 MB.
	mostAllocated = 256 << 20
	// mostActions bounds the actions of an input.
	mostActions = 256
)

// FuzzRingReceiver changes the ring of a rank as the input says, before it is opened and
// while it is read: its words, its length, its name. The receiver, made by its factory, may
// not crash, hang or read without end, and counts each file that it does not read.
func FuzzRingReceiver(f *testing.F) {
	image := ringOfARank(f)
	words := written(image)
	f.Add([]byte{})
	for kind := range byte(configurations) {
		f.Add([]byte{kind, actPoll, actPoll, actTruncate, 128, 0, actPoll, actPoll})
		f.Add([]byte{kind, actPoll, actAnother, actPoll, actReplace, actPoll, actRemove, actPoll})
		f.Add([]byte{kind, actTruncate, 0, 0, actPoll, actGrow, actPoll})
	}
	for i := range min(len(words), 400) {
		f.Add([]byte{byte(i), actEdit, byte(i >> 8), byte(i), 0, byte(i % 8), actPoll, actEdit, byte(i >> 8), byte(i), 0, byte(i/8) % 8, actPoll})
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		watch := time.AfterFunc(inputPatience, func() { hungReceiver(input) })
		defer watch.Stop()
		before := allocated()
		p := newRingProgram(t, image, words, input)
		p.run()
		assert.Less(t, allocated()-before, uint64(mostAllocated), "bytes allocated")
	})
}

// ringOfARank is the ring of a process that was killed in the middle of an operation. It has
// something in every table.
func ringOfARank(f *testing.F) []byte {
	f.Helper()
	dir := f.TempDir()
	j := startJobOf(f, dir, 1, 4, "witness", "RESUMED=300", "LOCKSTEP_RING_LANES=2", "LOCKSTEP_RING_RECORDS=64")
	line, err := j.out[0].ReadString('\n')
	require.NoError(f, err)
	require.Equal(f, "open\n", line)
	require.NoError(f, j.ranks[0].Process.Kill())
	j.wait()
	paths, err := filepath.Glob(filepath.Join(dir, "*.ring"))
	require.NoError(f, err)
	require.Len(f, paths, 1)
	image, err := os.ReadFile(paths[0])
	require.NoError(f, err)
	return image
}

// written is where an image has words that are not 0.
func written(image []byte) (at []int) {
	for i := 0; i+8 <= len(image); i += 8 {
		if binary.NativeEndian.Uint64(image[i:]) != 0 {
			at = append(at, i)
		}
	}
	return at
}

// hungReceiver ends the process: a reader that loops cannot be stopped otherwise.
func hungReceiver(input []byte) {
	_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
	debug.SetTraceback("none")
	panic(fmt.Sprintf("input hangs for %v: %q", inputPatience, input))
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// configurations is how many configurations inputs choose from.
const configurations = 4

func configOf(kind int, dir string) *Config {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	cfg.Directory = dir
	switch kind {
	case 1: // the process counts as dead at once
		cfg.deadAfter = 1
		cfg.RemoveDead = time.Millisecond
	case 2:
		cfg.Level, cfg.DetailOnStall, cfg.GPUClock = "all", true, clockRaw
		cfg.StallAfter, cfg.StallRepeat, cfg.StateInterval = time.Millisecond, time.Millisecond, time.Millisecond
		cfg.MembersInterval, cfg.StepDeadline = time.Millisecond, time.Millisecond
	case 3:
		cfg.Level, cfg.Record, cfg.Kernels = "summary", recordUnchanged, kernelSummary
		cfg.MaxOpenSteps, cfg.BatchOps, cfg.MaxRings = 1, 1, 1
		cfg.Anchor.Function, cfg.Anchor.Every = "all_reduce", 2
	}
	return cfg
}

// ringProgram is an input that runs.
type ringProgram struct {
	t      *testing.T
	input  []byte
	image  []byte
	words  []int
	dir    string
	path   string
	names  int
	now    time.Time
	tel    *componenttest.Telemetry
	rd     *reader
	faces  []*rankReceiver
	spans  consumertest.TracesSink
	events consumertest.LogsSink
}

func newRingProgram(t *testing.T, image []byte, words []int, input []byte) *ringProgram {
	t.Helper()
	p := &ringProgram{t: t, input: input, image: image, words: words, dir: t.TempDir(), now: time.Now(), tel: componenttest.NewTelemetry()}
	p.path = filepath.Join(p.dir, "1-2-00000003.ring")
	require.NoError(t, os.WriteFile(p.path, image, 0o600))
	cfg := configOf(p.below(configurations), p.dir)
	require.NoError(t, cfg.Validate())
	set, f := metadatatest.NewSettings(p.tel), NewFactory()
	p.create(f.CreateTraces(t.Context(), set, cfg, &p.spans))
	p.createLogs(f.CreateLogs(t.Context(), set, cfg, &p.events))
	p.rd = p.faces[0].handle.Value
	return p
}

// create notes a face of the receiver. It is not started: the input says when it polls.
func (p *ringProgram) create(r receiver.Traces, err error) {
	p.t.Helper()
	require.NoError(p.t, err)
	p.faces = append(p.faces, r.(*rankReceiver))
}

func (p *ringProgram) createLogs(r receiver.Logs, err error) {
	p.t.Helper()
	require.NoError(p.t, err)
	p.faces = append(p.faces, r.(*rankReceiver))
}

func (p *ringProgram) byte() byte {
	if len(p.input) == 0 {
		return 0
	}
	b := p.input[0]
	p.input = p.input[1:]
	return b
}

// below returns a number from 0 to n-1, and 0 where n is 0.
func (p *ringProgram) below(n int) int {
	v := int(p.byte())
	if n > 256 {
		v = v<<8 | int(p.byte())
	}
	return v % max(n, 1)
}

// The actions of an input.
const (
	actPoll = iota
	actEdit
	actEditAnywhere
	actTruncate
	actGrow
	actReplace
	actRemove
	actAnother
	actions
)

func (p *ringProgram) run() {
	for range mostActions {
		if len(p.input) == 0 {
			break
		}
		p.act(p.below(actions))
	}
	p.poll()
	for _, f := range p.faces {
		require.NoError(p.t, f.Shutdown(context.Background()))
	}
	require.NoError(p.t, p.tel.Shutdown(context.Background()))
	p.checkSpans()
}

// act changes files, which may be gone, or polls.
func (p *ringProgram) act(action int) {
	switch action {
	case actPoll:
		p.poll()
	case actEdit:
		p.edit(p.words[p.below(len(p.words))] + 8*p.below(3))
	case actEditAnywhere:
		p.edit(8 * p.below(len(p.image)/8))
	case actTruncate:
		_ = os.Truncate(p.path, int64(p.below(1<<16))*int64(len(p.image))>>16)
	case actGrow:
		_ = os.Truncate(p.path, int64(len(p.image)))
	case actReplace:
		aside := filepath.Join(p.dir, "aside")
		require.NoError(p.t, os.WriteFile(aside, p.image, 0o600))
		require.NoError(p.t, os.Rename(aside, p.path))
	case actRemove:
		_ = os.Remove(p.path)
	case actAnother: // of the same rank
		if p.names < 4 {
			p.names++
			p.path = filepath.Join(p.dir, fmt.Sprintf("1-2-%08d.ring", p.names))
			require.NoError(p.t, os.WriteFile(p.path, p.image, 0o600))
		}
	}
}

// edit changes one word of the file.
func (p *ringProgram) edit(at int) {
	file, err := os.OpenFile(p.path, os.O_RDWR, 0)
	if err != nil {
		return // removed
	}
	defer file.Close()
	var word [8]byte
	_, _ = file.ReadAt(word[:], int64(at)) // 0 behind its end
	binary.NativeEndian.PutUint64(word[:], p.changed(binary.NativeEndian.Uint64(word[:])))
	_, err = file.WriteAt(word[:], int64(at))
	require.NoError(p.t, err)
}

func (p *ringProgram) changed(word uint64) uint64 {
	switch p.below(8) {
	case 0:
		return ^uint64(0)
	case 1:
		return 0
	case 2:
		return word + uint64(int64(int8(p.byte())))
	case 3:
		return word ^ 1<<(p.byte()%64)
	case 4:
		return word | 1<<63
	case 5:
		return word << 32
	case 6:
		return binary.NativeEndian.Uint64(p.image[p.words[p.below(len(p.words))]:])
	}
	for range 8 {
		word = word<<8 | uint64(p.byte())
	}
	return word
}

// poll is a second later than the one before, so that it lists the directory again.
func (p *ringProgram) poll() {
	p.now = p.now.Add(time.Second + time.Duration(p.byte())*time.Millisecond)
	p.rd.lookNext = time.Time{}
	p.rd.poll(p.now)
	paths, refused := ring.Discover(p.dir, ring.Options{})
	require.Empty(p.t, refused)
	for _, path := range paths {
		_, known := p.rd.refused.known[path]
		assert.True(p.t, known || p.rd.rings[path] != nil, "%s is read, or refused and counted", path)
	}
	if len(p.rd.refused.known) > 0 {
		b := bench{tel: p.tel}
		assert.Positive(p.t, b.counter(p.t, "rings_refused"))
	}
}

// checkSpans checks that what was sent can be read back whole.
func (p *ringProgram) checkSpans() {
	for _, td := range p.spans.AllTraces() {
		_, problems := otelmap.TracesToOps(td)
		assert.Empty(p.t, problems)
		for _, rs := range td.ResourceSpans().All() {
			p.checkText(rs.Resource().Attributes())
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					assert.True(p.t, utf8.ValidString(s.Name()), "name %q", s.Name())
					p.checkText(s.Attributes())
				}
			}
		}
	}
}

func (p *ringProgram) checkText(m pcommon.Map) {
	for name, v := range m.All() {
		if v.Type() == pcommon.ValueTypeStr {
			assert.True(p.t, utf8.ValidString(v.Str()), "%s is UTF-8: %q", name, v.Str())
		}
	}
}
