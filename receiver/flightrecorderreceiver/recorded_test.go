// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestRecorded_TooManyRanks_OneWithoutDumpsForLongestIsForgotten(t *testing.T) {
	r := newRecorded(&Config{MaxFiles: 2, MaxSeries: 10})
	dump, err := flightrecorder.Decode(frwrite.Pickle(dumpOf(0)), flightrecorder.Options{})
	require.NoError(t, err)
	add := func(rank int64) []model.Op {
		return r.add(time.Unix(1_760_000_000, 0), &model.RankState{Rank: model.Rank{Rank: rank}}, dump)
	}
	assert.Len(t, add(0), 1)
	assert.Len(t, add(1), 1)
	assert.Empty(t, add(0))
	assert.Len(t, add(2), 1)
	assert.Empty(t, add(0), "its dumps go on")
	assert.Len(t, add(1), 1)
}
