// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// A logs pipeline that takes nothing holds up neither the findings nor the other outputs, and not
// the end of the collector.
func TestConsume_LogsNeverReturn_SpansGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{}
		r.attach(t, NewFactory(), connectortest.NewNopSettings(metadata.Type), newDefaultConfig(), delivertest.NewStuck(t))
		for _, f := range r.faces {
			require.NoError(t, f.Start(t.Context(), componenttest.NewNopHost()))
		}
		began := time.Now()
		const findings = 20
		for i := range findings {
			f := slowRank(strconv.Itoa(i), 1, int64(i))
			f.Status = model.StatusClosed
			r.consume(t, f)
		}
		assert.LessOrEqual(t, time.Since(began), deliver.Patience)
		assert.Len(t, r.spanNames(), findings)
		assert.NotEmpty(t, r.metrics.AllMetrics())

		began = time.Now()
		h := r.faces[0].(*face).handle.Value
		var err error
		for _, f := range r.faces {
			err = errors.Join(err, f.Shutdown(context.Background()))
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
		assert.EqualValues(t, findings, h.lost.Load())
	})
}
