// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// long is a text of some 1,000 bytes that no other is.
func long(i int) string { return strconv.Itoa(i) + padding }

var padding = strings.Repeat("x", 1000)

// recount walks all that a watch holds.
func recount(w *Watch) (bytes int64) {
	for _, j := range w.jobs {
		n := jobBytes + len(j.key) + len(j.id) + len(j.name)
		for _, r := range j.ranks {
			n += rankBytes + r.texts()
		}
		for _, c := range j.comms {
			n += c.size()
		}
		bytes += int64(n)
	}
	for _, n := range w.nodes {
		bytes += int64(nodeBytes + n.texts())
		for i := range n.sets {
			bytes += int64(sizeOf(n.sets[i].entries) + sizeOf(n.sets[i].next))
		}
	}
	for _, e := range w.spans {
		bytes += int64(e.size())
	}
	return bytes
}

// Whatever senders report on other nodes and jobs, the watch keeps to its bytes and reports a job of mixed
// versions.
func TestWatch_Flood_StaysWithinBytesAndTellsOfOthers(t *testing.T) {
	const limit = 1 << 20
	rank := func(i int, job string) *model.RankState {
		return &model.RankState{
			Source: model.StateRankEvents, Rank: model.Rank{Rank: int64(i), JobID: job, Incarnation: job, HostName: long(i), HostID: long(i), HWID: long(i)},
		}
	}
	for name, send := range map[string]func(r *rig, i int){
		"new ranks": func(r *rig, i int) { r.AddState(rank(i, "hostile"), r.now) },
		"new jobs":  func(r *rig, i int) { r.AddState(rank(i, long(i)), r.now) },
		"new communicators": func(r *rig, i int) {
			s := rank(i%4, "hostile")
			members := make([]int64, 200)
			for k := range members {
				members[k] = int64(k)
			}
			s.Comms = []model.CommState{{Comm: model.Comm{ID: long(i), Name: long(i)}, Members: members}}
			r.AddState(s, r.now)
		},
		"new nodes and versions": func(r *rig, i int) {
			o := version(i, model.VersionKernelDriver, long(i), 1)
			o.HostID, o.HostName, o.Unit, o.Model = long(i), long(i), long(i), long(i)
			r.observe(&o)
		},
		"new versions of a node": func(r *rig, i int) {
			o := version(99, model.VersionNICFirmware, long(i), 1)
			o.Unit, o.Model, o.Of = long(i), long(i), maxEntries
			r.observe(&o)
		},
		"versions that are too long": func(r *rig, i int) {
			o := version(i, model.VersionKernelDriver, long(i)+padding, 1)
			r.observe(&o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			r := newRig(func(c *Config) { c.MaxBytes, c.MaxJobs = limit, 32 }, oldDriver, newDriver)
			r.jobs = []plan{{"quiet", []int{0, 1}, [][]int64{{0, 1}}}}
			r.pass(10 * time.Minute)
			for i := range tier.N(t, 1500, 50_000) {
				send(r, i)
				require.LessOrEqual(t, r.room.Bytes(), limit)
				require.LessOrEqual(t, r.nodeBytes, limit)
				if i%300 == 0 {
					r.pass(time.Minute)
				}
			}
			r.pass(30 * time.Minute)
			standing := r.Standing(r.now)
			require.Len(t, standing, 1)
			assert.Equal(t, "quiet", standing[0].JobID)
			assert.Equal(t, recount(r.Watch), r.Stats().Bytes)
			assert.Less(t, heap(), before+3*limit+2<<20)
			runtime.KeepAlive(r)
		})
	}
}
