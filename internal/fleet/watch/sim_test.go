// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// rollout is a fleet of nodes with eight ranks each, on which jobs of several sizes run, and whose
// driver is updated node by node.
type rollout struct {
	*Watch
	now    time.Time
	tick   int64
	driver []string
	order  []int // in which nodes are updated
	jobs   []tenant
	of     []int // the job that is on each node
}

// tenant is a job on nodes in a row.
type tenant struct {
	nodes, updated int
	states         []model.RankState
	// spans is since when it spans two drivers, and longest for how long it ever did.
	spans   time.Time
	longest time.Duration
}

const ranksPerNode = 8

// newRollout has jobs of 4096, 1024, 256, 64 and 8 nodes, as many as there is room for.
func newRollout(nodes int) *rollout {
	cfg := NewDefaultConfig()
	cfg.Compatible = map[model.VersionDomain][][]string{model.VersionNICFirmware: {{"28.39.*", "28.41.*"}}}
	r := &rollout{Watch: New(cfg), now: time.Unix(1_759_999_800, 0), driver: make([]string, nodes)}
	for i := range r.driver {
		r.driver[i] = oldDriver
		r.order = append(r.order, i)
	}
	for at := 0; at < nodes; {
		size := 8
		for _, s := range []int{4096, 1024, 256, 64} {
			if len(r.jobs) < map[int]int{4096: 1, 1024: 3, 256: 9, 64: 20}[s] && s <= nodes-at {
				size = s
				break
			}
		}
		size = min(size, nodes-at)
		r.of = append(r.of, slices.Repeat([]int{len(r.jobs)}, size)...)
		r.jobs = append(r.jobs, newTenant(len(r.jobs), at, size))
		at += size
	}
	return r
}

// newTenant makes a job: communicators of all ranks, of those of one place in each node, of each
// node, and of pairs of neighbours.
func newTenant(n, first, nodes int) tenant {
	t := tenant{nodes: nodes, states: make([]model.RankState, nodes*ranksPerNode)}
	for i := range t.states {
		host := hostName(first + i/ranksPerNode)
		t.states[i] = model.RankState{Source: model.StateRankEvents, Rank: model.Rank{
			JobID: fmt.Sprint("job", n), Incarnation: fmt.Sprint("life", n), Rank: int64(i), HostName: host, HostID: "id-" + host,
		}}
	}
	add := func(name string, members []int64) {
		c := model.CommState{Comm: model.Comm{ID: name}, Backend: "nccl", Members: members}
		for _, m := range members {
			t.states[m].Comms = append(t.states[m].Comms, c)
		}
	}
	row := func(from, step, count int) (out []int64) {
		for i := range count {
			out = append(out, int64(from+i*step))
		}
		return out
	}
	add("world", row(0, 1, nodes*ranksPerNode))
	for i := range ranksPerNode {
		add(fmt.Sprint("data", i), row(i, ranksPerNode, nodes))
	}
	for i := range nodes {
		add(fmt.Sprint("tensor", i), row(i*ranksPerNode, 1, ranksPerNode))
		for k := range ranksPerNode {
			if i%2 == 0 && i+1 < nodes {
				add(fmt.Sprint("stage", i*ranksPerNode+k), row(i*ranksPerNode+k, ranksPerNode, 2))
			}
		}
	}
	return t
}

// tell has a node tell of all of its versions.
func (r *rollout) tell(node int) {
	for _, v := range []struct {
		domain         model.VersionDomain
		model, version string
	}{
		{model.VersionKernelDriver, "", r.driver[node]},
		{model.VersionUserDriver, "", r.driver[node]},
		{model.VersionCUDA, "", r.driver[node][:3]},
		{model.VersionGSP, "h100", r.driver[node]},
		{model.VersionVBIOS, "h100", "96.00.89.00.01"},
		{model.VersionNICFirmware, "MT_0000000838", []string{"28.39.1002", "28.41.1000"}[node%2]},
		{model.VersionNICDriver, "mlx5_core", "24.04-0.6.6"},
		{model.VersionKernel, "", "5.15.0-107-generic"},
	} {
		o := version(node, v.domain, v.version, r.tick)
		o.Model = v.model
		o.Time = r.now.UnixNano()
		r.Observe(&o, r.now)
	}
}

// minute lets one pass: a fifth of the nodes and of the ranks has its heartbeat, and so many nodes are
// updated, in order, and tell of it.
func (r *rollout) minute(updated, more int) []model.Finding {
	r.now = r.now.Add(time.Minute)
	r.tick++
	for _, n := range r.order[min(updated, len(r.order)):min(updated+more, len(r.order))] {
		r.driver[n] = newDriver
		r.jobs[r.of[n]].updated++
		r.tell(n)
	}
	for n := range r.driver {
		if int64(n)%5 == r.tick%5 {
			r.tell(n)
		}
	}
	for i := range r.jobs {
		t := &r.jobs[i]
		for k := range t.states {
			if int64(k)%5 == r.tick%5 {
				r.AddState(&t.states[k], r.now)
			}
		}
		if t.updated == 0 || t.updated == t.nodes {
			t.spans = time.Time{}
			continue
		}
		if t.spans.IsZero() {
			t.spans = r.now
		}
		t.longest = max(t.longest, r.now.Sub(t.spans)+time.Minute)
	}
	return r.Tick(r.now)
}

func (r *rollout) job(f *model.Finding) *tenant {
	var n int
	if _, err := fmt.Sscanf(f.JobID, "job%d", &n); err != nil {
		return nil
	}
	return &r.jobs[n]
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A driver is rolled out over 10,000 nodes, 1,500 in the quick tier, one job after the other, in an
// hour. Who spans it for long is told of, and nobody else; and when the rollout is through, nothing
// is open.
func TestRollout(t *testing.T) {
	nodes := tier.N(t, 1500, 10_000)
	before := heap()
	r := newRollout(nodes)
	made := heap()
	long, short := r.rollOut(t, nodes*160/10_000)
	assert.Positive(t, long)
	assert.Positive(t, short)
	t.Logf("heap %.0f MiB, the states themselves %.0f MiB", float64(heap()-made)/(1<<20), float64(made-before)/(1<<20))
	runtime.KeepAlive(r)
}

// The same over nodes here and there, so that all jobs span it at once.
func TestRolloutHereAndThere(t *testing.T) {
	t.Parallel()
	nodes := tier.N(t, 400, 1000)
	r := newRollout(nodes)
	rand.New(rand.NewPCG(1, 7)).Shuffle(len(r.order), func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	long, _ := r.rollOut(t, nodes/100)
	assert.Equal(t, len(r.jobs), long)
}

// rollOut updates so many nodes a minute, and counts the jobs that spanned both drivers for so long
// that they must be told of, and those that must not.
func (r *rollout) rollOut(t *testing.T, perMinute int) (long, short int) {
	t.Helper()
	const around = 6
	nodes := len(r.driver)
	told := map[string]bool{}
	var longest time.Duration
	peak := 0
	for minute := range around + nodes/perMinute + 1 + around {
		updated, more := max(minute-around, 0)*perMinute, perMinute
		if minute < around {
			more = 0
		}
		began := time.Now()
		for _, e := range r.minute(updated, more) {
			if e.Status != model.StatusClosed {
				told[e.JobID] = true
			}
		}
		longest = max(longest, time.Since(began))
		peak = max(peak, len(r.Standing(r.now)))
		for _, e := range r.Standing(r.now) {
			require.False(t, r.job(&e).spans.IsZero(), "minute %d: %s of %s spans no two drivers", minute, e.CommID, e.JobID)
			require.Equal(t, "world", e.CommID, "it has all the others")
			require.Equal(t, string(model.VersionKernelDriver), e.Op, "the others follow from it")
		}
	}
	assert.Empty(t, r.Standing(r.now))
	assert.Equal(t, r.Stats().Opened, r.Stats().Closed)
	for i := range r.jobs {
		j := &r.jobs[i]
		name := fmt.Sprint("job", i)
		switch { // a heartbeat later than Settle, and a minute
		case j.longest >= r.cfg.Settle+6*time.Minute:
			long++
			assert.True(t, told[name], "%s spanned for %v", name, j.longest)
		case j.longest < r.cfg.Settle:
			short++
			assert.False(t, told[name], "%s spanned for %v", name, j.longest)
		}
	}
	t.Logf("%d nodes, %d ranks, %d communicators of %d members in all, %d jobs (%d told, at most %d at once): the longest minute took %v",
		nodes, r.ranks, r.comms, r.members, len(r.jobs), len(told), peak, longest.Round(time.Millisecond))
	t.Logf("%d jobs spanned it for long, %d briefly", long, short)
	return long, short
}

// What one look costs while two drivers are out, by nodes.
func BenchmarkTick(b *testing.B) {
	for _, nodes := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			before := heap()
			r := newRollout(nodes)
			made := heap()
			r.minute(0, nodes/2)
			for range 24 {
				r.minute(0, 0)
			}
			held := heap()
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				r.Tick(r.now)
			}
			b.ReportMetric(float64(held-made)/float64(nodes), "heap-B/node")
			runtime.KeepAlive(before)
		})
	}
}

// What taking one version costs.
func BenchmarkObserve(b *testing.B) {
	r := newRollout(10_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o := version(i%10_000, model.VersionKernelDriver, oldDriver, int64(i+1))
		o.Time = r.now.UnixNano()
		r.Observe(&o, r.now)
	}
}
