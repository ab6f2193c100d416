// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
)

// A state of a rank is read while the watches judge.
func TestRead_WatchesAreBusy_DoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatches(newDefaultConfig(), zap.NewNop())
		w.lock.Lock()
		go func() {
			time.Sleep(time.Hour)
			w.lock.Unlock()
		}()
		ld := plog.NewLogs()
		otelmap.AppendRankState(ld, &model.RankState{Rank: model.Rank{JobID: "job", Incarnation: "life", Rank: 1}, Source: model.StateFlightRecorder})
		began := time.Now()
		assert.NotNil(t, w.read(ld).Apply)
		assert.Zero(t, time.Since(began))
		time.Sleep(2 * time.Hour)
	})
}

// What waits for the analysis is counted with its texts.
func TestRead_LongTexts_AreCounted(t *testing.T) {
	const records, long = 100, 4000
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("lockstep.job.id", strings.Repeat("j", long))
	sl := rl.ScopeLogs().AppendEmpty()
	for range records {
		o := model.EpochObservation{
			Time: 1, JobID: strings.Repeat("j", long), Generation: strings.Repeat("g", long),
			Domain: model.Domain{Kind: "shard", ID: strings.Repeat("d", long)}, Observer: strings.Repeat("o", long),
			State: model.DomainCommitted, Epoch: model.Some(int64(5)), Save: 5,
		}
		epochmap.ObservationToLog(&o, sl.LogRecords().AppendEmpty())
	}
	in := newWatches(newDefaultConfig(), zap.NewNop()).read(ld)
	assert.NotNil(t, in.Apply)
	assert.Greater(t, in.Bytes, long+records*3*long, "the texts of a resource once")
	assert.Less(t, in.Bytes, 2*long*(1+records*3))
}
