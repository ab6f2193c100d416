// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Config describes a cluster. Zero values mean the defaults in brackets.
type Config struct {
	Nodes int
	K     int     // neighbours of each node [10]
	Rate  float64 // exchanges a second of each pair [10]
	Paths int     // parallel paths that take turns [4]
	Load  float64 // of every queue [0.8]
	// Outliers is the share of stamps that are wrong by up to OutlierNS to either
	// side [none, 10 us].
	Outliers  float64
	OutlierNS float64
	Jitter    float64 // mean delay of a stamp behind the event, ns [20]
	Seed      uint64
}

func (c Config) withDefaults() Config {
	if c.K == 0 {
		c.K = 10
	}
	if c.Rate == 0 {
		c.Rate = 10
	}
	if c.Paths == 0 {
		c.Paths = 4
	}
	if c.Load == 0 {
		c.Load = 0.8
	}
	if c.OutlierNS == 0 {
		c.OutlierNS = 10e3
	}
	if c.Jitter == 0 {
		c.Jitter = 20
	}
	return c
}

// Fault is how a node misbehaves.
type Fault struct {
	// Faces is by how much the times that it tells different peers differ, ns: each
	// peer is told another one, evenly distributed.
	Faces float64
	// Early is by how much it stamps what it receives too early, ns.
	Early float64
	// Replay is how many exchanges old the stamps are, at most, that it answers with.
	Replay int
	// Slow is by how much longer what it sends takes to leave, ns.
	Slow float64
}

// Cluster is a set of nodes that probe one another.
type Cluster struct {
	Config
	Clocks []Clock
	Pairs  [][2]int // the first probes the second
	Faults map[int]Fault
	fabric *Fabric
}

// Swing and period of oscillators: a room that warms and cools within ten minutes
// by a tenth of a kelvin, at 0.3 ppm per kelvin.
const (
	swing  = 0.03e-6
	period = 600e9
)

// New returns a cluster of which every truth follows from the seed: offsets within
// 10 ms about readings of some days, drifts within 50 ppm.
func New(cfg Config) *Cluster {
	c := &Cluster{Config: cfg.withDefaults(), Faults: map[int]Fault{}}
	rng := rand.New(rand.NewPCG(c.Seed, 1))
	c.fabric = NewFabric(c.Load, c.Seed)
	for range c.Nodes {
		c.Clocks = append(c.Clocks, Clock{
			Start: 1e14 + rng.Int64N(20e6), Drift: (rng.Float64()*2 - 1) * 50e-6,
			Swing: swing, Period: period, Phase: rng.Float64() * 6.28,
		})
	}
	c.Pairs = mesh(c.Nodes, c.K, rng)
	return c
}

// mesh is the union of k/2 random cycles through all nodes: connected, and regular
// but for pairs that two cycles share.
func mesh(n, k int, rng *rand.Rand) (pairs [][2]int) {
	seen := map[[2]int]bool{}
	for range (k + 1) / 2 {
		order := rng.Perm(n)
		for i, a := range order {
			b := order[(i+1)%n]
			if p := [2]int{min(a, b), max(a, b)}; !seen[p] && a != b {
				seen[p] = true
				pairs = append(pairs, p)
			}
		}
	}
	return pairs
}

// ID is the clock id of a node.
func ID(node int) string { return fmt.Sprintf("host:n%05d/b/raw", node) }

// Estimator takes stamps of messages between two clocks, as a pair.Estimator does.
type Estimator interface {
	Upper(a, b, width int64)
	Lower(a, b, width int64)
}

// Prober makes the exchanges of one pair, in order.
type Prober struct {
	c        *Cluster
	src, dst int
	rng      *rand.Rand
	routes   [][2]route // by path: there and back
	next     float64
	n        int
	lie      float64 // what dst's clock shows more to src than to others, less the same of src
	answers  [][2]int64
	// Crossed holds the stamps of the latest exchange in which a message arrived
	// before it was sent, whatever the offset: the upper bound of the offset lies
	// below the lower one. CrossedN counts such exchanges.
	Crossed  struct{ At, Lower, Upper int64 }
	CrossedN int
}

// Prober returns the prober of pair i. Probers of different pairs are independent.
func (c *Cluster) Prober(i int) *Prober {
	src, dst := c.Pairs[i][0], c.Pairs[i][1]
	p := &Prober{c: c, src: src, dst: dst, rng: rand.New(rand.NewPCG(c.Seed, uint64(i)+2))}
	for path := range c.Paths {
		p.routes = append(p.routes, [2]route{
			c.fabric.route(src, dst, uint64(path)), c.fabric.route(dst, src, uint64(path)),
		})
	}
	p.next = p.rng.Float64() * 1e9 / c.Rate
	p.lie = c.Faults[dst].Faces*p.rng.Float64() - c.Faults[src].Faces*p.rng.Float64()
	return p
}

// turnaround is how long a reflector takes to answer, ns.
const turnaround = 20e3

// Until makes all exchanges that begin before a true time, and hands their stamps
// on.
func (p *Prober) Until(t float64, e Estimator) {
	for ; p.next < t; p.next += 1e9 / p.c.Rate {
		p.exchange(p.next, e)
		p.n++
	}
}

func (p *Prober) exchange(t float64, e Estimator) {
	r := p.routes[p.n%len(p.routes)]
	src, dst := p.c.Faults[p.src], p.c.Faults[p.dst]
	t1 := t
	t2 := t1 + src.Slow + p.c.fabric.delay(r[0], p.rng)
	t3 := t2 + turnaround*(0.5+p.rng.Float64())
	t4 := t3 + dst.Slow + p.c.fabric.delay(r[1], p.rng)

	s1 := p.stamp(p.src, t1-p.jitter(), 0)
	s2 := p.stamp(p.dst, t2+p.jitter(), p.lie-dst.Early)
	s3 := p.stamp(p.dst, t3-p.jitter(), p.lie)
	s4 := p.stamp(p.src, t4+p.jitter(), -src.Early)
	s2, s3 = p.replayed(dst.Replay, s2, s3)
	if s3-s4 > s2-s1 {
		p.Crossed.At, p.Crossed.Lower, p.Crossed.Upper = s1, s3-s4, s2-s1
		p.CrossedN++
	}
	e.Upper(s1, s2, 0)
	e.Lower(s4, s3, 0)
}

// jitter is by how much a stamp is taken later than the packet came, or earlier
// than it left: both make delays longer.
func (p *Prober) jitter() float64 { return p.rng.ExpFloat64() * p.c.Jitter }

// stamp is what a node's clock shows at a true time, wrong by so much. An outlier
// is wrong in either direction.
func (p *Prober) stamp(node int, t, wrong float64) int64 {
	if p.rng.Float64() < p.c.Outliers {
		wrong += (2*p.rng.Float64() - 1) * p.c.OutlierNS
	}
	return p.c.Clocks[node].Read(t) + int64(wrong)
}

// replayed returns stamps of an earlier answer where the node replays.
func (p *Prober) replayed(most int, s2, s3 int64) (int64, int64) {
	if most == 0 {
		return s2, s3
	}
	p.answers = append(p.answers, [2]int64{s2, s3})
	if len(p.answers) > most {
		p.answers = p.answers[1:]
	}
	old := p.answers[p.rng.IntN(len(p.answers))]
	return old[0], old[1]
}

// Offset returns by how much node ref's clock exceeds another's when that one shows
// a reading, rounded to ns.
func (c *Cluster) Offset(ref, node int, reading int64) int64 {
	r := &c.Clocks[ref]
	return r.Start - reading + int64(math.Round(r.elapsed(c.Clocks[node].When(reading))))
}
