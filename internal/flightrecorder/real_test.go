// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// realState reads a real dump. What the tests below expect was read off the dumps with
// Python's pickle.
func realState(t *testing.T, incident string, rank int64) (*Dump, model.RankState) {
	t.Helper()
	path := filepath.Join(testdata.Shared(t, "flight-recorder"), incident, fmt.Sprintf("_dump_%d", rank))
	d, err := ReadFile(path, Options{})
	require.NoError(t, err)
	assert.Empty(t, d.Problems)
	assert.Empty(t, d.Partial)
	got, prefix, ok := RankOf(path)
	require.True(t, ok)
	assert.Equal(t, rank, got)
	assert.Equal(t, "_dump_", prefix)
	return d, d.State(model.Rank{Rank: rank}, path, StateOptions{})
}

func commNamed(t *testing.T, s *model.RankState, name string) *model.CommState {
	t.Helper()
	i := slices.IndexFunc(s.Comms, func(c model.CommState) bool { return c.Comm.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return &s.Comms[i]
}

func TestRealDumpOfAStoppedDevice(t *testing.T) {
	d, s := realState(t, "gpu_error_2nd", 9)
	assert.Equal(t, Version{2, 9}, d.Version)
	assert.Equal(t, "2.27.3", s.LibVersion)
	assert.Len(t, d.Entries, 20)
	assert.Len(t, d.Groups, 13)
	assert.Len(t, d.Status, 13)
	assert.True(t, s.OnlyActive)
	assert.Equal(t, int64(1758580156095401070), s.LastEnqueue)
	require.Len(t, s.Ops, 20)

	c := commNamed(t, &s, "TENSOR_MODEL_PARALLEL_GROUP")
	assert.Equal(t, "37", c.Comm.ID)
	assert.Equal(t, []int64{8, 9, 10, 11}, c.Members)
	assert.Equal(t, []model.Frontier{{Enqueued: model.Some[int64](87760), Completed: model.Some[int64](87748)}}, c.Frontiers)
	o := s.Ops[0]
	assert.Equal(t, []any{model.AllGather, int64(87749), "[[2048, 1, 5120]]", "[[8192, 1, 5120]]", "bfloat16", "pt_autograd_1"},
		[]any{o.Name, o.Seq, o.In, o.Out, o.InType, o.Thread})

	i := slices.IndexFunc(s.Ops, func(o model.StateOp) bool { return o.Recorded == "nccl:recv 1<-0" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, model.Some[int64](1), s.Ops[i].Peer, "rank 0 of the pipeline group of 1 and 9")
	assert.Equal(t, int64(13998), s.Ops[i].Seq)
	assert.True(t, commNamed(t, &s, "PIPELINE_MODEL_PARALLEL_GROUP").P2PShared)
}

func TestRealDumpOfAStuckHost(t *testing.T) {
	d, s := realState(t, "lock_gil_1st", 9)
	assert.Empty(t, d.Entries)
	assert.Empty(t, s.Ops)
	assert.True(t, s.OnlyActive)
	c := commNamed(t, &s, "TENSOR_MODEL_PARALLEL_GROUP")
	assert.True(t, c.FrontiersInferred)
	assert.Equal(t, []model.Frontier{{Enqueued: model.Some[int64](88683), Completed: model.Some[int64](88683)}}, c.Frontiers)
}

// All 32 real dumps: what order says of the groups without entries is what the entries
// say of the others, where there are any.
func TestRealStatusFollowsTheOrderOfCreation(t *testing.T) {
	checked := 0
	for _, incident := range []string{"gpu_error_2nd", "lock_gil_1st"} {
		for rank := range int64(16) {
			d, want := realState(t, incident, rank)
			for i := range d.Entries {
				d.Entries[i].PG = -1
			}
			got := d.State(model.Rank{Rank: rank}, "", StateOptions{})
			for i := range want.Comms {
				w, g := &want.Comms[i], &got.Comms[i]
				require.Equal(t, w.Comm, g.Comm)
				if !w.FrontiersInferred && !w.P2PShared {
					assert.True(t, g.FrontiersInferred)
					checked++
				}
				assert.Equal(t, w.Frontiers, g.Frontiers, "%s rank %d %s", incident, rank, w.Comm.Name)
			}
		}
	}
	// Five groups and more of each of the 30 dumps that have entries.
	assert.Greater(t, checked, 90)
}

// Every operation that is open has members that are known, and every message a peer.
func TestRealDumpsAreUnderstood(t *testing.T) {
	for _, incident := range []string{"gpu_error_2nd", "lock_gil_1st"} {
		for rank := range int64(16) {
			d, s := realState(t, incident, rank)
			assert.Len(t, s.Ops, len(d.Entries))
			for i := range s.Ops {
				o := &s.Ops[i]
				assert.Contains(t, s.Comms[o.Comm].Members, rank)
				assert.False(t, o.Done)
				if o.Kind != model.KindCollective {
					assert.True(t, o.Peer.OK)
					assert.NotEqual(t, rank, o.Peer.V)
				}
			}
		}
	}
}
