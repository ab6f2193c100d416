// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// gapQuantile is the percentile of the limit.
const gapQuantile = 0.999

// limit is how long a job may stand in a phase of these gaps.
func (c *Config) limit(h *stats.LogLinear) time.Duration {
	if h == nil || h.Len() < c.MinGaps {
		return c.StartLimit
	}
	return max(c.Floor, time.Duration(c.Factor*float64(h.Quantile(gapQuantile))))
}
