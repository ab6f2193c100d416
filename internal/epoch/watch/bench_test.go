// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// BenchmarkObserve takes the heartbeats of observers that are followed, and observations of new ones for which
// there is no room.
func BenchmarkObserve(b *testing.B) {
	const followed = 1024
	seen := func(observer int, revision int64) *model.EpochObservation {
		return &model.EpochObservation{
			JobID: "job", Generation: "g", Save: 10, Domain: model.Domain{Kind: model.DomainModel, ID: strconv.Itoa(observer % followed)},
			State: model.DomainCommitted, Epoch: model.Some[int64](10), Observer: "node" + strconv.Itoa(observer), Revision: revision,
		}
	}
	for name, first := range map[string]int{"followed": 0, "no room": followed} {
		b.Run(name, func(b *testing.B) {
			cfg := NewDefaultConfig()
			cfg.MaxObservers = followed
			w, now := New(cfg), time.Unix(1_760_000_000, 0)
			for i := range followed {
				w.Observe(seen(i, 1), now)
			}
			next := make([]*model.EpochObservation, followed)
			for i := range next {
				next[i] = seen(first+i, 2)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.Observe(next[i%followed], now)
			}
			require.Equal(b, first > 0, w.Stats().Unfollowed > 0)
		})
	}
}
