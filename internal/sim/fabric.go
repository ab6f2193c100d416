// SPDX-License-Identifier: Apache-2.0

package sim

import "math/rand/v2"

// Fabric is a folded Clos network.
type Fabric struct {
	// RackNodes share a switch, PodRacks a layer of Spines; pods are joined by Cores.
	RackNodes, PodRacks, Spines, Cores int
	// Hop is what a switch and its serialisation take at least, ns.
	Hop float64
	// Load is the share of time in which a queue is busy, Wait how long a packet
	// then waits on average, ns.
	Load, Wait float64
	seed       uint64
}

// NewFabric returns a network of 400 ns switches, 32 nodes a rack and 512 a pod,
// with queues at the given load of packets of 1,500 bytes at 100 Gbit/s: 120 ns
// each, and 120/(1-load) to wait behind them.
func NewFabric(load float64, seed uint64) *Fabric {
	return &Fabric{
		RackNodes: 32, PodRacks: 16, Spines: 16, Cores: 64, Hop: 400 + 120,
		Load: load, Wait: 120 / (1 - load), seed: seed,
	}
}

// route is what a packet passes: queues, and a time that never changes.
type route struct {
	queues int
	least  float64
}

// route of a packet from one node to another. flow tells parallel paths apart:
// switches choose by it, and choose differently for each direction.
func (f *Fabric) route(src, dst int, flow uint64) route {
	h := mix(f.seed ^ mix(flow^mix(uint64(src)<<32|uint64(dst))))
	rackS, rackD := src/f.RackNodes, dst/f.RackNodes
	podS, podD := rackS/f.PodRacks, rackD/f.PodRacks
	r := route{queues: 2, least: f.cable(0, src, rackS, 3) + f.cable(0, dst, rackD, 3)}
	if rackS == rackD {
		return f.withHops(r)
	}
	spineS := podS*f.Spines + int(h%uint64(f.Spines))
	spineD := spineS
	r.queues = 4
	if podS != podD {
		r.queues = 6
		core := int(h >> 16 % uint64(f.Cores))
		spineD = podD*f.Spines + int(h%uint64(f.Spines))
		r.least += f.cable(2, spineS, core, 100) + f.cable(2, spineD, core, 100)
	}
	r.least += f.cable(1, rackS, spineS, 30) + f.cable(1, rackD, spineD, 30)
	return f.withHops(r)
}

// withHops adds the switches: one less than queues, of which the first is the
// sender's.
func (f *Fabric) withHops(r route) route {
	r.least += float64(r.queues-1) * f.Hop
	return r
}

// cable is how long a cable of up to so many metres takes, 5 ns each.
func (f *Fabric) cable(layer, a, b int, metres float64) float64 {
	h := mix(f.seed ^ mix(uint64(layer)<<60|uint64(a)<<30|uint64(b)))
	return 5 * metres * (0.1 + 0.9*float64(h>>11)/(1<<53))
}

// delay is how long one packet takes.
func (f *Fabric) delay(r route, rng *rand.Rand) float64 {
	d := r.least
	for range r.queues {
		if rng.Float64() < f.Load {
			d += rng.ExpFloat64() * f.Wait
		}
	}
	return d
}

// mix is the finaliser of splitmix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
