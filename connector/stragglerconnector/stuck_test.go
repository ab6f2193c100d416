// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// A logs pipeline that takes nothing holds up neither the spans nor the other outputs, and not
// the end of the collector.
func TestConsume_LogsNeverReturn_SpansAndStoriesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{}
		r.attach(t, connectortest.NewNopSettings(metadata.Type), newDefaultConfig(), delivertest.NewStuck(t))
		for _, f := range r.faces {
			require.NoError(t, f.Start(t.Context(), componenttest.NewNopHost()))
		}
		began := time.Now()
		const steps = 20
		r.run(t, steps)
		assert.LessOrEqual(t, time.Since(began), deliver.Patience)
		assert.Len(t, r.traces.AllTraces(), steps)
		time.Sleep(newDefaultConfig().FlushInterval)
		synctest.Wait()
		assert.Len(t, r.metrics.AllMetrics(), 2, "with the first step and with the interval")

		began = time.Now()
		h := r.faces[0].(*face).handle.Value
		var err error
		for _, f := range r.faces {
			err = errors.Join(err, f.Shutdown(context.Background()))
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
		assert.Positive(t, h.findingsLost.Load())
	})
}
