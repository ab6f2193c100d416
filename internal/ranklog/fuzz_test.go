// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// What logs are made of is anything: no input panics, hangs, or makes a rank of no job.
func FuzzJudge(f *testing.F) {
	for _, write := range versions {
		f.Add([]byte(write(inDefault(3))), int64(4))
	}
	f.Add([]byte(fmt.Sprintf(torchrun, 5, -9, "Signal 9 (SIGKILL) received by PID 12345")), int64(0))
	f.Add([]byte("[1,3]<stderr>:[rank"), int64(-1))
	f.Add([]byte("[PG ID 1 PG GUID ( Rank 9] Received a dump signal due to a collective timeout from  rank 1. Last enqueued NCCL work: -1, last completed NCCL work: -1."), int64(2))
	f.Fuzz(func(t *testing.T, in []byte, world int64) {
		const most = 64 // an absence is judged of each rank
		s := NewSet()
		require.NoError(t, s.Read(File{Path: "a.log", Rank: -1}, bytes.NewReader(in)))
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
	f := model.Finding{Rank: model.Some(int64(2)), Evidence: `{"members":4,"notes":["had"]}`}
	Note(&f, map[int64]Error{2: {Text: "ValueError: x", Where: "a:1"}})
	assert.JSONEq(t, `{"members":4,"notes":["last error in the log of rank 2: ValueError: x (a:1)","had"]}`, f.Evidence)
	Note(&f, nil)
	broken := model.Finding{Rank: model.Some(int64(2)), Evidence: "no JSON"}
	Note(&broken, map[int64]Error{2: {Text: "x"}})
	assert.Equal(t, "no JSON", broken.Evidence)
}
