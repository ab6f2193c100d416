// SPDX-License-Identifier: Apache-2.0

package ckptsim

import "math/rand/v2"

// Crash is what a crash takes with it.
type Crash uint8

// Crashes. What was synced stays, whatever the crash.
const (
	// Kill ends the processes: the system's caches live on.
	Kill Crash = iota
	// Journal is a crash of the machine under a file system that keeps names in order: of
	// what was not synced, names are lost from some point on, and contents each on their own.
	Journal
	// Any is a crash of the machine under any file system that POSIX allows: each name that
	// was not synced is lost or kept on its own.
	Any
	// Few is one of those which takes a name or two, or something of a file or two, and
	// leaves all else: what comes nearest to a whole save.
	Few
	// Crashes is how many kinds there are.
	Crashes
)

// loss says what of a file's writes is lost: those from last on, and the data of those that
// drop tells.
type loss struct {
	last int
	drop func(i int) bool
}

func nothingLost(n *node) loss { return loss{len(n.writes), func(int) bool { return false }} }

// Crashed returns what is found after a crash: one of the states that are possible.
func (d *Disk) Crashed(c Crash, rng *rand.Rand) *State {
	name := func(int) bool { return true }
	share := []float64{0, 0.2, 0.8}[rng.IntN(3)]
	file := func(n int) loss { return d.nodes[n].some(share, rng) }
	switch c {
	case Journal:
		last := d.journal(rng)
		name = func(i int) bool { return i < last }
	case Any:
		lost := []float64{0, 0.1, 0.5, 0.9}[rng.IntN(4)]
		name = func(int) bool { return rng.Float64() >= lost }
	case Few:
		victims := d.few(rng)
		name = func(i int) bool { return !victims[i] }
		file = func(n int) loss {
			if victims[len(d.names)+n] {
				return d.nodes[n].one(rng)
			}
			return nothingLost(d.nodes[n])
		}
	default:
		file = func(n int) loss { return nothingLost(d.nodes[n]) }
	}
	return d.state(name, file, rng)
}

// few chooses one or two of the names, and of the files after them, of which something is not
// on the disk.
func (d *Disk) few(rng *rand.Rand) map[int]bool {
	var from []int
	for i := range d.names {
		if !d.names[i].synced {
			from = append(from, i)
		}
	}
	for i, n := range d.nodes {
		if n.synced < len(n.writes) {
			from = append(from, len(d.names)+i)
		}
	}
	out := map[int]bool{}
	for range 1 + rng.IntN(2) {
		if len(from) > 0 {
			out[from[rng.IntN(len(from))]] = true
		}
	}
	return out
}

// journal chooses how many names were in the journal: all that were synced, at least.
func (d *Disk) journal(rng *rand.Rand) int {
	first := 0
	for i := range d.names {
		if d.names[i].synced {
			first = i + 1
		}
	}
	return first + rng.IntN(len(d.names)-first+1)
}

// some loses a share of what was not synced.
func (n *node) some(share float64, rng *rand.Rand) loss {
	l := loss{len(n.writes), func(int) bool { return rng.Float64() < share/2 }}
	if rng.Float64() < share {
		l.last = n.synced + rng.IntN(l.last-n.synced+1)
	}
	return l
}

// one loses one write, or all from one on.
func (n *node) one(rng *rand.Rand) loss {
	at := n.synced + rng.IntN(len(n.writes)-n.synced)
	if rng.IntN(2) == 0 {
		return loss{at, func(int) bool { return false }}
	}
	return loss{len(n.writes), func(i int) bool { return i == at }}
}

// state applies what is kept, and follows the names that are left from the root.
func (d *Disk) state(name func(i int) bool, file func(n int) loss, rng *rand.Rand) *State {
	files := make([]*stateFile, len(d.nodes))
	for i, n := range d.nodes {
		files[i] = &stateFile{dir: n.dir, at: n.made}
		if !n.dir {
			n.crashed(files[i], file(i), rng)
		}
	}
	for i := range d.names {
		if !d.names[i].synced && !name(i) {
			continue
		}
		for _, e := range d.names[i].set {
			if e.node == 0 {
				delete(files[e.dir].entries, e.name)
			} else {
				files[e.dir].add(e.name, files[e.node])
			}
		}
	}
	return &State{root: files[0], Tick: 1}
}

// crashed says what is left of a file's contents. Size, time and the map of blocks of a file
// reach the disk together: what is seen of new contents is seen with their time.
func (n *node) crashed(f *stateFile, l loss, rng *rand.Rand) {
	for i, w := range n.writes[:l.last] {
		f.at = w.at
		if i < n.synced || w.cut || !l.drop(i) {
			f.put(w, len(w.data))
			continue
		}
		// The blocks were mapped, or the last of them only in part, and data never came.
		some := 0
		if rng.IntN(2) == 0 {
			some = rng.IntN(len(w.data) + 1)
		}
		f.put(w, some)
		if i < l.last-1 || rng.IntN(2) == 0 {
			f.extend(int(w.off) + len(w.data))
		}
	}
}

// Singles returns every state in which one thing is lost: a name, the data of a write, or all
// writes of a file from one on.
func (d *Disk) Singles() []*State {
	rng := rand.New(rand.NewPCG(0, 0)) //nolint:gosec // a seed, no secret
	every := func(int) bool { return true }
	var out []*State
	for i := range d.names {
		if !d.names[i].synced {
			out = append(out, d.state(func(k int) bool { return k != i }, func(n int) loss { return nothingLost(d.nodes[n]) }, rng))
		}
	}
	for i, n := range d.nodes {
		for at := n.synced; at < len(n.writes); at++ {
			for _, l := range []loss{{at, func(int) bool { return false }}, {len(n.writes), func(k int) bool { return k == at }}} {
				out = append(out, d.state(every, func(k int) loss {
					if k == i {
						return l
					}
					return nothingLost(d.nodes[k])
				}, rng))
			}
		}
	}
	return out
}
