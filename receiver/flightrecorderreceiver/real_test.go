// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// The published dumps of 16 ranks lie beside a log of another name and are found by their
// folder alone. In each, the groups have the rank of the file's name in common.
func TestPublishedDumps(t *testing.T) {
	base := testdata.Shared(t, "flight-recorder")
	for _, incident := range []string{"gpu_error_2nd", "lock_gil_1st"} {
		t.Run(incident, func(t *testing.T) {
			dir := filepath.Join(base, incident)
			cfg := config(dir)
			cfg.AllRanks, cfg.MaxAge, cfg.Wait, cfg.MaxWait = true, 0, time.Hour, time.Hour
			b := start(t, cfg, nil)
			e := b.waitFor(t, "all ranks", allStates(16))
			assert.Empty(t, e.absent)
			assert.Equal(t, incident, e.states[0][0].Rank.JobID)
			assert.Zero(t, b.counter(t, "dumps_failed"))

			for rank := range int64(16) {
				data, err := os.ReadFile(filepath.Join(dir, "_dump_"+strconv.FormatInt(rank, 10)))
				require.NoError(t, err)
				d, err := flightrecorder.Decode(data, flightrecorder.DefaultOptions())
				require.NoError(t, err)
				if own, ok := frwatch.OwnRank(d.Groups); ok {
					assert.Equal(t, rank, own)
				} else {
					t.Logf("rank %d is not told by its groups", rank)
				}
			}
		})
	}
}
