// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// together checks that what clocks read at a moment stands at one time, within the
// bounds of both.
func (w *world) together(a, b string, at int64) bool {
	w.t.Helper()
	p, q := w.place(a, at), w.place(b, at)
	return p.Bounded && q.Bounded && p.Timeline == q.Timeline && distance(p.Time, q.Time) <= p.Bound+q.Bound
}

// TestRawGoesBack: a machine is restored from a snapshot. It alone is concerned, and a
// finding names it.
func TestRawGoesBack(t *testing.T) {
	for _, back := range []time.Duration{20 * time.Second, 10 * time.Minute, time.Hour} {
		for _, leads := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v/%v", back, leads), func(t *testing.T) {
				w := cluster(t, 31, 5)
				for range 6 {
					w.window()
				}
				reference := parse(w.place(raw(2), w.now).Timeline[len(Prefix):]).host
				host := 2
				if _, err := fmt.Sscanf(reference, "h%d", &host); err == nil && !leads {
					host = (host + 1) % 5
				}
				before := w.place(raw((host+1)%5), w.now)
				set := w.now
				old := w.clocks[raw(host)]
				w.clocks[raw(host)] = func(at int64) int64 {
					if at >= set {
						return old(at) - back.Nanoseconds()
					}
					return old(at)
				}
				for i := range 30 {
					if i == 12 {
						w.restart()
					}
					w.window()
					other := (host + 1) % 5
					for id := range w.clocks {
						if id == raw(host) && i < 4 {
							continue
						}
						assert.True(t, w.together(raw(other), id, w.now), "%s after %d windows", id, i+1)
					}
					p := w.place(raw(other), w.now)
					assert.InDelta(t, float64(w.now-set), float64(p.Time-before.Time), 1e6, "the others go on")
				}
				w.alone(t, raw(host))
				for _, f := range w.findings {
					assert.Equal(t, raw(host), f.Clock, "%s: %s", f.Class, f.Evidence)
				}
			})
		}
	}
}

// alone checks that findings name a clock, or others of its host, and nobody else.
func (w *world) alone(t *testing.T, id string) {
	t.Helper()
	named := false
	for _, f := range w.findings {
		assert.Equal(t, parse(id).host, f.Host, "%s of %s: %s", f.Class, f.Clock, f.Evidence)
		named = named || f.Clock == id && (f.Class == model.ClassStep || f.Class == model.ClassUntrusted)
	}
	assert.True(t, named)
}

// TestRealtimeIsSetBack: by more than anybody is late, it is known at once where new
// readings stand; by less, until they reach the old ones. Both are told at all times.
func TestRealtimeIsSetBack(t *testing.T) {
	for _, back := range []time.Duration{20 * time.Second, 90 * time.Second} {
		t.Run(back.String(), func(t *testing.T) {
			w := cluster(t, 35, 5)
			for range 50 {
				w.window()
			}
			set := w.now + windowN/2
			stepping(w, map[int64]int64{set: -back.Nanoseconds()})
			w.stepWindow(set)
			for range 20 {
				w.window()
				p := w.contains(realtime(1), w.now)
				if back > time.Minute || w.now-set > back.Nanoseconds()+windowN {
					assert.Less(t, p.Bound, int64(1e6))
				}
				last := int64(0)
				for r := w.clocks[realtime(1)](set - 2*back.Nanoseconds()); r < epoch+w.now; r += sec / 3 {
					p, ok := w.tl.Place(realtime(1), r)
					assert.True(t, ok)
					assert.GreaterOrEqual(t, p.Time, last)
					last = p.Time
				}
				// What is late by half a minute, from before.
				if late := w.now - 30*sec; late < set {
					w.contains(realtime(1), late)
				}
			}
			w.alone(t, realtime(1))
		})
	}
}

// What is under way while a clock is set bears readings of both of its lives, which are
// marked, however far back it went: one that was less than a minute ago is there twice.
func TestReadingsAroundAStepAreMarked(t *testing.T) {
	for _, by := range []time.Duration{100 * time.Millisecond, 5 * time.Second, -5 * time.Second, -90 * time.Second, -8 * time.Minute} {
		t.Run(by.String(), func(t *testing.T) {
			w := prompt(t, 36, 5)
			set := w.now + sec/5
			stepping(w.world, map[int64]int64{set: by.Nanoseconds()})
			w.changes[realtime(1)] = append(w.changes[realtime(1)], set)
			for range 16 {
				w.step()
			}
			assert.EqualValues(t, 1, w.tl.State().clock(t, realtime(1)).Steps)
			for _, near := range []int64{-sec / 5, -sec / 100, 0, sec / 100, sec / 5} {
				assert.True(t, w.contains(realtime(1), set+near).Stepped, "%v after", time.Duration(near))
			}
			if by > 0 || by < -time.Minute {
				assert.False(t, w.contains(realtime(1), set+4*sec).Stepped)
			}
			assert.False(t, w.contains(realtime(2), set).Stepped)
		})
	}
}

// TestTwins: two machines bear one name, and both send what they measure in every
// window, in any order. Nobody is moved, and the name is marked.
func TestTwins(t *testing.T) {
	for _, off := range []time.Duration{-20 * time.Second, -time.Hour, 300 * time.Hour} {
		for _, host := range []int{0, 2} {
			t.Run(fmt.Sprintf("%v/%d", off, host), func(t *testing.T) {
				w := cluster(t, 32, 6)
				for range 6 {
					w.window()
				}
				since := w.now
				other := (host + 1) % 6
				before := w.place(raw(other), w.now)
				own := w.clocks[raw(host)]
				twin := func(at int64) int64 { return own(at) + off.Nanoseconds() }
				for i := range 40 {
					w.now += windowN
					for turn := range 2 {
						w.clocks[raw(host)] = own
						if (i+turn)%2 == 1 {
							w.clocks[raw(host)] = twin
						}
						for _, p := range w.pairs {
							if turn == 0 || p[0] == raw(host) || p[1] == raw(host) {
								_ = w.tl.AddEdge(w.edge(p[0], p[1]))
							}
						}
						if turn == 0 && i%3 == 0 {
							w.advance()
						}
					}
					w.clocks[raw(host)] = own
					w.advance()
					for id := range w.clocks {
						if parse(id).host != fmt.Sprintf("h%d", host) {
							assert.True(t, w.together(raw(other), id, w.now), "%s after %d windows", id, i+1)
						}
					}
					assert.InDelta(t, float64(w.now-since), float64(w.place(raw(other), w.now).Time-before.Time), 1e6, "the others go on")
				}
				w.alone(t, raw(host))
				assert.True(t, w.tl.State().clock(t, raw(host)).Model.Untrusted)
				w.restart()
				for range 20 {
					w.window()
					assert.True(t, w.tl.State().clock(t, raw(host)).Model.Untrusted, "a restart does not make two machines one")
				}
				for range 70 { // the twin is gone
					w.window()
				}
				assert.False(t, w.tl.State().clock(t, raw(host)).Model.Untrusted)
			})
		}
	}
}

// TestEdgeFromTheFuture: one of a long way ahead, and one of a little, and what is
// heard later goes on as if it had not been.
func TestEdgeFromTheFuture(t *testing.T) {
	for _, hosts := range []int{2, 5} {
		for _, ahead := range []time.Duration{25 * time.Second, time.Hour, 300 * 24 * time.Hour} {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d/%v/%v", hosts, ahead, restarted), func(t *testing.T) {
					w := cluster(t, 33, hosts)
					for range 6 {
						w.window()
					}
					begin := w.now
					w.now += ahead.Nanoseconds()
					future := w.edge(raw(0), raw(1))
					w.now = begin
					assert.NoError(t, w.tl.AddEdge(future))
					w.advance()
					if restarted {
						w.restart()
					}
					for i := range 10 {
						w.window()
						for id := range w.clocks {
							assert.True(t, w.together(raw(0), id, w.now), "%s after %d windows", id, i+1)
							if i > 4 {
								until := w.tl.State().clock(t, id).Model.Until
								assert.InDelta(t, float64(w.clocks[id](w.now)), float64(until), 3e9, "%s is heard after %d windows", id, i+1)
								assert.Less(t, w.place(id, w.now).Bound, int64(5e6))
							}
						}
					}
					for _, f := range w.findings {
						assert.NotContains(t, []string{model.ClassStep, model.ClassUntrusted}, f.Class, f.Clock)
					}
				})
			}
		}
	}
}

// restart takes the timeline's state over into a new one.
func (w *world) restart() {
	w.t.Helper()
	saved := snapshotOf(w.tl)
	w.tl = New(w.tl.opt)
	assert.NoError(w.t, w.tl.Restore(saved))
}

// TestLateExporter: two tell of the same clocks, and one of them is half a minute late.
func TestLateExporter(t *testing.T) {
	w := cluster(t, 34, 4)
	var waiting [][]model.ClockEdge
	for range 40 {
		w.now += windowN
		var now []model.ClockEdge
		for _, p := range w.pairs {
			e := w.edge(p[0], p[1])
			now = append(now, e)
			assert.NoError(t, w.tl.AddEdge(e))
		}
		w.advance()
		if waiting = append(waiting, now); len(waiting) > 15 {
			for _, e := range waiting[0] {
				assert.NoError(t, w.tl.AddEdge(e))
			}
			waiting = waiting[1:]
			w.advance()
		}
		for id := range w.clocks {
			assert.True(t, w.together(raw(0), id, w.now), id)
			assert.InDelta(t, float64(w.clocks[id](w.now)), float64(w.tl.State().clock(t, id).Model.Until), 3e9, id)
		}
	}
	for _, f := range w.findings {
		assert.NotContains(t, []string{model.ClassStep, model.ClassUntrusted}, f.Class, f.Clock)
	}
}
