// SPDX-License-Identifier: Apache-2.0

package stats

import "unsafe"

const (
	// firstOctave and octaves span 2^-30 s, a nanosecond, to 2^14 s, four hours.
	firstOctave = -30
	octaves     = 44
)

// page counts the buckets of one octave.
type page [perOctave]uint32

// Recorder counts durations in the buckets of Histogram, in pages that it takes from a Pool:
// once these are there, it allocates nothing. The zero value is empty.
type Recorder struct {
	Count int64
	Sum   uint64 // ns
	Zero  int64  // durations of 0
	pages [octaves]*page
}

// Add counts one duration in ns. One that is out of range counts in the nearest octave.
func (r *Recorder) Add(ns uint64, pool *Pool) {
	r.Count++
	r.Sum += ns
	if ns == 0 {
		r.Zero++
		return
	}
	i := Bucket(float64(ns) * 1e-9)
	o := min(max(int(i>>Scale)-firstOctave, 0), octaves-1)
	pg := r.pages[o]
	if pg == nil {
		pg = pool.get()
		r.pages[o] = pg
	}
	pg[i&(perOctave-1)]++
}

// Each calls fn with every bucket that is not empty, by index.
func (r *Recorder) Each(fn func(index int32, n int64)) {
	for o, p := range r.pages {
		if p == nil {
			continue
		}
		for i, n := range p {
			if n > 0 {
				fn(int32((o+firstOctave)*perOctave+i), int64(n))
			}
		}
	}
}

// Histogram returns a copy of what was counted, with all its buckets.
func (r *Recorder) Histogram() *Histogram {
	h := NewHistogram()
	h.Count, h.Sum, h.Zero = r.Count, float64(r.Sum)*1e-9, r.Zero
	r.Each(func(i int32, n int64) { h.Buckets[i] = n })
	return h
}

// keptPages is how many free pages are kept, 2 MiB of them.
const keptPages = 4096

// Pool holds the pages of recorders; those of one that was reset serve the next. The zero value
// is ready.
type Pool struct {
	free []*page
	out  int // handed out
}

// Bytes returns how much memory the pages hold that recorders have.
func (p *Pool) Bytes() int { return p.out * int(unsafe.Sizeof(page{})) }

func (p *Pool) get() *page {
	p.out++
	if n := len(p.free); n > 0 {
		pg := p.free[n-1]
		p.free = p.free[:n-1]
		return pg
	}
	return &page{}
}

// Reset empties a recorder and takes its pages back.
func (p *Pool) Reset(r *Recorder) {
	for i, pg := range r.pages {
		if pg != nil {
			*pg = page{}
			p.out--
			if len(p.free) < keptPages {
				p.free = append(p.free, pg)
			}
			r.pages[i] = nil
		}
	}
	r.Count, r.Sum, r.Zero = 0, 0, 0
}
