// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Whatever is told in whatever order, nothing panics, limits hold, and what was held is given back.
func FuzzWatch(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 40, 41, 42, 43, 44, 45, 46, 47, 48, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90})
	f.Fuzz(func(t *testing.T, in []byte) {
		cfg := NewDefaultConfig()
		cfg.MaxNodes, cfg.MaxVersions, cfg.MaxJobs, cfg.MaxRanks, cfg.MaxComms, cfg.MaxMembers, cfg.MaxEpisodes = 4, 12, 2, 9, 5, 12, 2
		w, now := New(cfg), time.Unix(1_759_999_800, 0)
		next := func() int64 {
			if len(in) == 0 {
				return 0
			}
			b := in[0]
			in = in[1:]
			return int64(b)
		}
		for len(in) > 0 {
			switch next() % 3 {
			case 0:
				o := version(int(next()%5), model.VersionDomains[next()%domains], string(rune('a'+next()%3)), next()%9)
				o.Unit, o.Of, o.Life, o.Time = string(rune('a'+next()%3)), next()%4, next()%3, now.UnixNano()
				if next()%2 == 0 {
					o.Model = "board"
				}
				w.Observe(&o, now)
			case 1:
				members := [][]int64{{0, 1, 2}, {0, 1}, {0, 2}, {2, 1}, {-1, 0}, nil}[next()%6]
				s := state(&plan{string(rune('a' + next()%3)), []int{int(next() % 5), int(next() % 5), int(next() % 5)}, nil}, next()%3)
				s.Source = []model.StateSource{model.StateRankEvents, model.StateRAS, model.StateFlightRecorder}[next()%3]
				s.LibVersion = string(rune('a' + next()%2))
				s.Comms = []model.CommState{{Comm: model.Comm{ID: []string{"0xa", "7", ""}[next()%3], Size: model.Some(next() % 15), Rank: model.Some(next() % 15)}, Backend: "nccl", Members: members}}
				w.AddState(&s, now)
			case 2:
				now = now.Add(time.Duration(next()) * 10 * time.Second)
				w.Tick(now)
			}
			require.LessOrEqual(t, len(w.nodes), cfg.MaxNodes)
			require.LessOrEqual(t, w.held, cfg.MaxVersions)
			require.LessOrEqual(t, w.ranks, cfg.MaxRanks)
			require.LessOrEqual(t, w.comms, cfg.MaxComms)
			require.LessOrEqual(t, w.members, cfg.MaxMembers)
			require.LessOrEqual(t, len(w.spans), cfg.MaxEpisodes)
			require.Equal(t, len(w.spans), w.book.Len())
			requireCounts(t, w)
		}
		w.Tick(now.Add(24 * time.Hour))
		require.Empty(t, w.nodes)
		require.Empty(t, w.jobs)
		require.Equal(t, []int{0, 0, 0, 0, 0}, []int{w.held, w.ranks, w.comms, w.members, len(w.spans)})
		require.Equal(t, w.Stats().Opened, w.Stats().Closed)
	})
}
