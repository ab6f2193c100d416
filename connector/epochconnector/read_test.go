// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
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
