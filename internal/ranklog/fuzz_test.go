// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"errors"
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

// What logs are made of is anything: no input panics, hangs, or makes a rank of no job.
func FuzzJudge(f *testing.F) {
	for _, write := range versions {
		f.Add([]byte(write(inDefault(3))), int64(4))
	}
	f.Add([]byte(fmt.Sprintf(torchrun, 5, -9, "Signal 9 (SIGKILL) received by PID 12345")), int64(0))
	f.Add([]byte("[1,3]<stderr>:[rank"), int64(-1))
	f.Add([]byte(`{"log":"[rank0]\u00`), int64(1))
	f.Add([]byte("2026-11-20T10:00:00Z stderr P a\rb\n2026-11-20T10:00:00Z stderr F\n"), int64(1))
	f.Add([]byte("\xff\xfe=\xd8a\x00\x00"), int64(1))
	f.Add([]byte("[PG ID 1 PG GUID ( Rank 9] Received a dump signal due to a collective timeout from  rank 1. Last enqueued NCCL work: -1, last completed NCCL work: -1."), int64(2))
	f.Add([]byte("Rank 0 timed out waiting for rank(s) 3, 5 in monitoredBarrier"), int64(8))
	f.Add([]byte("mismatch between collectives Rank 0 is running collective: X(OpType=A, TensorShape=[9999999999, 9999999999]), but Rank 1 is running collective: B"), int64(2))
	f.Fuzz(func(t *testing.T, in []byte, world int64) {
		const most = 64 // an absence is judged of each rank
		s := NewSet()
		if err := s.Read(File{Path: "a.log", Rank: -1}, bytes.NewReader(in)); !errors.Is(err, ErrBlank) && !errors.Is(err, errDocument) {
			require.NoError(t, err)
		}
		greatest := s.world
		for rank := range s.ranks {
			if rank < 0 || rank > maxRank {
				t.Fatalf("rank %d", rank)
			}
			greatest = max(greatest, rank)
		}
		for rank := range s.exits {
			greatest = max(greatest, rank)
		}
		for rank := range s.reported {
			greatest = max(greatest, rank)
		}
		for _, st := range s.statements {
			greatest = max(greatest, st.by, st.world, slices.Max(append(st.late, -1)), slices.Max(append(st.came, -1)))
			for _, c := range st.calls {
				greatest = max(greatest, c.rank)
			}
		}
		for k := range s.sources {
			greatest = max(greatest, k.groupRank)
		}
		if greatest > most {
			t.Skip("too many ranks to be quick")
		}
		s.Judge(Options{Job: "j", WorldSize: min(world, most), Engine: desync.NewDefaultConfig()})
	})
}

// A line may be of any length, in pieces of any size; what stands at its end is read.
func TestEachLine_LongLine_IsReadToItsEnd(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine-100) + strings.TrimSuffix(strings.SplitN(versions["2.14"](inDefault(3)), "\n", 2)[0], "\n")
	s := NewSet()
	require.NoError(t, s.Read(File{Path: "a", Rank: -1}, iotest.OneByteReader(strings.NewReader(long))))
	require.True(t, s.Has())
	require.Len(t, s.ranks[3].waits, 1)

	var lines []string
	var numbers []int64
	require.NoError(t, eachLine(strings.NewReader("a\r\nb\rc\n\nd"), func(n int64, l []byte) {
		lines, numbers = append(lines, string(l)), append(numbers, n)
	}))
	assert.Equal(t, []string{"a", "", "b", "c", "", "d"}, lines)
	assert.Equal(t, []int64{1, 1, 2, 2, 3, 4}, numbers)
	require.Error(t, eachLine(io.MultiReader(strings.NewReader("a"), iotest.ErrReader(io.ErrClosedPipe)), func(int64, []byte) {}))
}

func TestDecode_ReadsInPiecesOfAnySize(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"a pair of units":       {"\xff\xfe=\xd8\x00\xdea\x00", "\U0001F600a"},
		"a unit that is cut":    {"\xff\xfea\x00b", "a"},
		"half a character":      {"\xff\xfe=\xd8a\x00b\x00", "\uFFFDb"},
		"big endian":            {"\xfe\xff\x00a\x00\n", "a\n"},
		"a mark alone":          {"\xff\xfe", ""},
		"NUL bytes":             {"\x00\x00a\x00b\x00", "ab"},
		"NUL units":             {"\xff\xfe\x00\x00a\x00", "a"},
		"UTF-8 behind its mark": {"\xef\xbb\xbfa", "a"},
		"nothing":               {"", ""},
	} {
		for _, in := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
			got, err := io.ReadAll(Decode(in))
			require.NoError(t, err, name)
			assert.Equal(t, c.want, string(got), name)
		}
	}
	_, err := io.ReadAll(Decode(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(io.ErrClosedPipe))))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// What is held of a line that a runtime cut is bounded, and what is written behind it is read.
func TestEachText_LinesWithoutEnd_AreBounded(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, piece := range map[string]string{
		"Docker":                  `{"log":"` + long + `","stream":"stderr","time":"t"}` + "\n",
		"containerd":              "2026-11-20T10:00:00.1Z stderr P " + long + "\n",
		"a string without an end": `{"log":"` + strings.Repeat(`\u001b`, 2<<10) + "\n",
	} {
		most, found := 0, 0
		text := strings.Repeat(piece, 150) + strings.ReplaceAll(piece, long, "the end")
		_, err := eachText(strings.NewReader(text), func(_ int64, _ string, l []byte) {
			most = max(most, len(l))
			found += strings.Count(string(l), "the end")
		})
		require.NoError(t, err)
		assert.LessOrEqual(t, most, maxLine, name)
		if strings.Contains(text, "the end") {
			assert.Equal(t, 1, found, name)
		}
	}
	var got []string
	_, err := eachText(strings.NewReader(`{"log":"a\u00e9\"\\\t\r`+`b\n","stream":"stdout"}`+"\n"+`{"log":"c\u12","x`), func(_ int64, _ string, l []byte) { got = append(got, string(l)) })
	require.NoError(t, err)
	assert.Equal(t, []string{"aé\"\\\t", "b", "c?12"}, got)
}

// What is kept of one rank does not grow with its log.
func TestSet_ManyLines_AreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		w := inDefault(1)
		w.seq = int64(41 + i)
		w.group = fmt.Sprint(i)
		b.WriteString(versions["2.3"](w))
	}
	s := NewSet()
	require.NoError(t, s.Read(File{Path: "a", Rank: -1}, strings.NewReader(b.String())))
	assert.Len(t, s.ranks[1].waits, maxWorks)
	assert.Len(t, s.ranks[1].progress, maxGroups)
}

func TestNote_KeepsTheEvidence(t *testing.T) {
	f := model.Finding{Rank: model.Some(int64(2)), Evidence: &evidence.Hang{Members: 4, Notes: []string{"had"}}}
	Note(&f, map[int64]Error{2: {Text: "ValueError: x", Where: "a:1"}})
	assert.JSONEq(t, `{"members":4,"notes":["last error in the log of rank 2: ValueError: x (a:1)","had"]}`, evidence.Encode(f.Evidence))
	Note(&f, nil)
	other := model.Finding{Rank: model.Some(int64(2)), Evidence: evidence.Text(`{"version":2}`)}
	Note(&other, map[int64]Error{2: {Text: "x"}})
	assert.Equal(t, evidence.Text(`{"version":2}`), other.Evidence)
	none := model.Finding{Rank: model.Some(int64(2))}
	Note(&none, map[int64]Error{2: {Text: "x", Where: "a:1"}})
	assert.JSONEq(t, `{"notes":["last error in the log of rank 2: x (a:1)"]}`, evidence.Encode(none.Evidence))
}
