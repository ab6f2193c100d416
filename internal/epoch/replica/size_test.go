// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// long is a text of 4,000 bytes that no other is.
func long(i int) string { return strconv.Itoa(i) + padding }

var padding = strings.Repeat("x", 4000)

// Whatever ranks report on other jobs, the watch keeps to its bytes and reports a job's wrong replica.
func TestWatch_Flood_StaysWithinBytesAndTellsOfOthers(t *testing.T) {
	const limit = 1 << 20
	for name, change := range map[string]func(i int, v *model.Fingerprint){
		"new ranks":  func(i int, v *model.Fingerprint) { v.Rank.Rank = int64(i) },
		"new groups": func(i int, v *model.Fingerprint) { v.Group = long(i) },
		"new slices in doubt": func(i int, v *model.Fingerprint) {
			v.Step, v.Start, v.Rank.Rank, v.Hash = int64(i/100), int64(i/100), int64(i%100), uint64(i)
		},
		"new jobs": func(i int, v *model.Fingerprint) { v.Rank.JobID, v.Rank.Incarnation = long(i), long(i) },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			r := newRig(Config{Groups: 64, Ranks: 4096, Bytes: limit})
			for step := int64(100); step <= 400; step += 100 {
				assert.Empty(t, r.all(step, 7, 7, 7).said())
			}
			for i := range tier.N(t, 600, 20_000) {
				v := printed(0, 3, 100, 7)
				v.Rank.JobID, v.Rank.Incarnation, v.Rank.HostName, v.Rank.HWID, v.Life = "hostile", "h", long(i), long(i), long(i%100)
				change(i, v)
				r.tell(v)
				require.LessOrEqual(t, r.Stats().Bytes, limit)
				if i%100 == 0 {
					r.all(400, 7, 7, 7).said()
				}
			}
			bytes, ranks := 0, 0
			for _, h := range r.jobs {
				bytes += holderBytes + len(h.job)
			}
			for _, g := range r.groups {
				bytes += g.size()
				ranks += len(g.ranks)
				doubts := 0
				for _, j := range g.doubt {
					doubts += j.size()
				}
				assert.Equal(t, doubts, g.doubts)
			}
			assert.Equal(t, []int{bytes, ranks}, []int{r.Stats().Bytes, r.Stats().Ranks})
			assert.Less(t, heap()-before, int64(2*limit+1<<20))
			assert.Contains(t, r.all(500, 7, 8, 7).said(), "first revision 1 over false step 500 from 500 minority [1]")
			runtime.KeepAlive(r)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Groups of new jobs replace one another: that of a job that was heard often stays, though it holds more.
func TestWatch_GroupsOfManyNewJobs_KeepThoseOfASettledJob(t *testing.T) {
	r := newRig(Config{Groups: 64})
	for step := int64(100); step <= 400; step += 100 {
		r.all(step, 7, 7, 7)
	}
	for i := range 200 {
		r.tell(printed(0, 3, 100, 7, func(v *model.Fingerprint) { v.Rank.JobID = "new " + strconv.Itoa(i) }))
	}
	assert.Len(t, r.groups, 64)
	assert.NotNil(t, r.groups[Key{"job", "first", "dp"}])
}
