// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"strconv"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// BenchmarkObserve takes fingerprints of groups that are held, of many jobs; and, where there is no room, of a
// new group of a job that has most groups, and of a new job.
func BenchmarkObserve(b *testing.B) {
	const held = 1024
	for name, next := range map[string]func(int) *model.Fingerprint{
		"held":      func(i int) *model.Fingerprint { return of("job "+strconv.Itoa(i%held), "dp", 0) },
		"new group": func(i int) *model.Fingerprint { return of("job 0", "group "+strconv.Itoa(i), 0) },
		"new job":   func(i int) *model.Fingerprint { return of("new job "+strconv.Itoa(i), "dp", 0) },
	} {
		b.Run(name, func(b *testing.B) {
			w := NewWatch(Config{Groups: held})
			for i := range held {
				w.Observe(of("job "+strconv.Itoa(i), "dp", 0), began)
			}
			all := make([]*model.Fingerprint, 4*held) // more than are held: those of before have left
			for i := range all {
				all[i] = next(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.Observe(all[i%len(all)], began)
			}
		})
	}
}

// BenchmarkTick judges many jobs whose groups have not changed.
func BenchmarkTick(b *testing.B) {
	w := NewWatch(Config{})
	for i := range 1024 {
		w.Observe(of("job "+strconv.Itoa(i), "dp", 0), began)
	}
	w.Tick(began)
	b.ReportAllocs()
	for b.Loop() {
		w.Tick(began)
	}
}
