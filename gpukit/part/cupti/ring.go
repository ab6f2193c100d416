// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"context"
	"time"

	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// kernel is a kernel on the host's clock, MONOTONIC_RAW ns.
type kernel struct {
	ring.Kernel
	name               string
	start, end, launch uint64
	bound              uint64 // half width of where start must be
	placed             bool   // the three are known
}

// at is when the kernel was launched, or where that is unknown, began.
func (k *kernel) at() uint64 {
	if k.Launched {
		return k.launch
	}
	return k.start
}

// record is what a process's ring held.
type record struct {
	path    string
	pid     int
	kernels []kernel
	clocks  []ring.Clock
	drops   [ring.DropCount]uint64
	counts  ring.Counts
	states  []string // of CUPTI, each as it came
	gpus    []ring.GPU
	strings int // names of kernels
	err     error
}

const (
	followEvery = 50 * time.Millisecond
	// The ring of a program: lanes for our two threads and some of the program's.
	ringLanes, ringRecords = "4", "65536"
)

// follow reads the rings in a folder while their processes run, until done is closed
// or ctx is done, then once more. It returns one for each process.
func follow(ctx context.Context, folder string, done <-chan struct{}) []*record {
	f := follower{folder: folder, known: map[string]bool{}}
	defer f.close()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.poll()
			continue
		case <-done:
		case <-ctx.Done():
		}
		f.poll()
		return f.finish()
	}
}

type follower struct {
	folder string
	known  map[string]bool
	rings  []*followed
}

type followed struct {
	ring  *ring.Ring
	out   *record
	clock gpuclock.Pairs
	first int // kernel that is not yet placed
	names map[string]bool
}

func (f *follower) poll() {
	paths, _ := ring.Discover(f.folder, ring.Options{})
	for _, path := range paths {
		if f.known[path] {
			continue
		}
		r, err := ring.Open(path, ring.Options{})
		if err != nil {
			continue // again at the next poll
		}
		f.known[path] = true
		f.rings = append(f.rings, &followed{ring: r, out: &record{path: path, pid: int(r.Header().PID)}, names: map[string]bool{}})
	}
	for _, r := range f.rings {
		r.poll()
	}
}

// poll places the kernels of the poll before: the readings of the clock after them
// have come since.
func (r *followed) poll() {
	until := len(r.out.kernels)
	r.ring.Poll(ring.LevelAll, func(_ int, rec *ring.Record) {
		switch rec.Kind() {
		case ring.KindClock:
			c := rec.Clock()
			r.out.clocks = append(r.out.clocks, c)
			r.clock.Add(gpuclock.Pair{Host: c.Raw, Clock: c.CUPTI, Width: uint64(c.Width)})
		case ring.KindKernel:
			r.out.kernels = append(r.out.kernels, kernel{Kernel: rec.Kernel()})
		}
	})
	r.place(until)
	state, result := r.ring.CUPTI()
	text := state.String()
	if result != 0 {
		text += resultText(result)
	}
	if n := len(r.out.states); n == 0 || r.out.states[n-1] != text {
		r.out.states = append(r.out.states, text)
	}
}

func (r *followed) place(until int) {
	for ; r.first < until; r.first++ {
		k := &r.out.kernels[r.first]
		var ok [3]bool
		k.start, k.bound, ok[0] = r.clock.Host(k.Start)
		k.end, _, ok[1] = r.clock.Host(k.End)
		ok[2] = true
		if k.Launched {
			k.launch, _, ok[2] = r.clock.Host(k.Launch)
		}
		k.placed = ok == [3]bool{true, true, true}
		switch {
		case k.Copy:
			k.name = copyName
		case k.Set:
			k.name = setName
		default:
			k.name = r.ring.String(k.Name)
			r.names[k.name] = true
		}
	}
}

func (f *follower) finish() []*record {
	var out []*record
	for _, r := range f.rings {
		r.place(len(r.out.kernels))
		r.out.drops, r.out.counts, r.out.gpus = r.ring.Drops(), r.ring.Stats().Counts, r.ring.GPUs(nil)
		r.out.strings, r.out.err = len(r.names), r.ring.Err()
		out = append(out, r.out)
	}
	return out
}

func (f *follower) close() {
	for _, r := range f.rings {
		_ = r.ring.Close() // only read from
	}
}

// window returns what the ring holds of the time between two stamps of the host.
func (r *record) window(begin, end uint64) (t tally, inside []kernel) {
	t = tally{}
	for _, k := range r.kernels {
		if !k.placed || k.at()+k.bound < begin || k.at() > end {
			continue
		}
		t.add(k.name, k.End-k.Start)
		inside = append(inside, k)
	}
	return t, inside
}

// unplaced returns how many kernels could not be put on the host's clock.
func (r *record) unplaced() int {
	n := 0
	for i := range r.kernels {
		if !r.kernels[i].placed {
			n++
		}
	}
	return n
}
