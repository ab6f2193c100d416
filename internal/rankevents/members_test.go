// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestMembers(t *testing.T) {
	f, r, g := stateRing(t, func(c *Config) { c.MembersInterval = 100 * time.Millisecond })
	fronts := f.fronts
	f.fronts = nil
	r.Pass(at(42_000), g.emit(t))
	assert.Empty(t, g.members, "it has had no traffic")
	f.fronts = fronts
	r.Pass(at(51_999), g.emit(t))
	assert.Empty(t, g.members)
	r.Pass(at(52_000), g.emit(t))
	require.Len(t, g.members, 1)
	s := g.members[0]
	assert.Equal(t, []any{g.rank, unixAt(52_000), model.StateRankEvents, 0}, []any{s.Rank, s.Time, s.Source, len(s.Ops)})
	require.Len(t, s.Comms, 1)
	assert.Equal(t, []any{"nccl", model.Some[int64](4), model.Some[int64](2)}, []any{s.Comms[0].Backend, s.Comms[0].Comm.Size, s.Comms[0].Comm.Rank})
	assert.Empty(t, s.Comms[0].Frontiers)
	r.Pass(at(151_999), g.emit(t))
	assert.Len(t, g.members, 1)
	r.Pass(at(152_000), g.emit(t))
	assert.Len(t, g.members, 2)
}

func TestNoMembersWhereNotWanted(t *testing.T) {
	_, r, g := stateRing(t, nil)
	r.Pass(at(500_000), g.emit(t))
	assert.Empty(t, g.members)
}
