// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// One dump with a clock that is an hour ahead, or behind, does not make the others stale.
func TestOneWrongClockIsNotTheNewest(t *testing.T) {
	at := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		c := conclusion{in: &Incidents{}, job: &job{waiting: map[int64][]Dump{
			0: {{Time: at}}, 1: {{Time: at.Add(time.Second)}}, 2: {{Time: at.Add(2 * time.Second)}}, 3: {{Time: at.Add(off)}},
		}}}
		c.in.cfg.Window = 2 * time.Minute
		assert.Equal(t, at.Add(2*time.Second), c.newest())
	}
}
