// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// meshTold is a mesh of hosts that tell of one another's raw clocks, one of which lies in what it
// tells.
type meshTold struct {
	*world
	hosts, liar int
	lie         func(peer int) int64 // by how much the liar's word is off
	from        int64                // when it begins to lie
	both        bool                 // the others tell of the liar as well
	flagged     bool                 // the liar says that it was stepped when it begins
	always      bool                 // and ever after
	per         int                  // solutions for each window
}

func newTold(t *testing.T, hosts int) *meshTold {
	t.Helper()
	w := &meshTold{world: newWorld(t, 7, Options{}), hosts: hosts, liar: -1, both: true}
	for i := range hosts {
		w.host(i, float64(3*i-5), 0)
	}
	w.pairs = nil
	return w
}

// edges are what everybody tells of the last window.
func (w *meshTold) edges() (all []model.ClockEdge) {
	for h := range w.hosts {
		all = append(all, w.edge(raw(h), realtime(h)))
		for g := range w.hosts {
			if g == h || g == w.liar && !w.both {
				continue
			}
			w.source[[2]string{raw(h), raw(g)}] = model.EdgeProbe
			e := w.edge(raw(h), raw(g))
			if h == w.liar && w.now > w.from {
				by := w.lie(g)
				e.Offset, e.Lower, e.Upper = e.Offset+by, e.Lower+by, e.Upper+by
				e.Stepped = w.always || w.flagged && w.now-windowN <= w.from
			}
			all = append(all, e)
		}
	}
	return all
}

// window lets two seconds pass, after which everybody tells of them.
func (w *meshTold) window() {
	w.t.Helper()
	w.now += windowN
	w.add(w.edges())
	w.advance()
}

// honestHold checks that honest clocks stand where each other is, within their bounds.
func (w *meshTold) honestHold() {
	w.t.Helper()
	at := w.now - windowN/2
	first := -1
	for h := range w.hosts {
		if h == w.liar {
			continue
		}
		if first < 0 {
			first = h
		}
		for _, id := range []string{raw(h), realtime(h)} {
			p, q := w.place(id, at), w.place(raw(first), at)
			w.meet(p, q, func() string { return fmt.Sprintf("%s at %v", id, time.Duration(at)) })
		}
	}
}

func (w *meshTold) accused() (classes map[string][]string) {
	classes = map[string][]string{}
	for _, f := range w.findings {
		if f.Status != model.StatusClosed {
			classes[f.Host] = append(classes[f.Host], f.Class)
		}
	}
	return classes
}

// Who contradicts everybody in what it tells is untrusted, by how much it may be, and nobody
// else is touched, even if it says that it was set. A reference that begins to lie moves others
// until that is proven, since it looks as if it was set and stays the reference: then it is
// found, and no more is checked.
func TestWhoContradictsEverybodyIsUntrusted(t *testing.T) {
	thin := tier.Thin{Every: 5}
	for _, size := range []time.Duration{
		time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond, 900 * time.Millisecond, time.Second, 1100 * time.Millisecond,
		1500 * time.Millisecond, 2200 * time.Millisecond, 3500 * time.Millisecond, 5 * time.Second, 20 * time.Second, 31 * time.Second, 33 * time.Second, time.Minute, time.Hour,
	} {
		for _, by := range []int64{int64(size), -int64(size)} {
			for _, begins := range []struct {
				from    int64
				flagged bool
			}{{0, false}, {20 * sec, false}, {20 * sec, true}} {
				for _, each := range []bool{false, true} {
					for _, both := range []bool{true, false} {
						for liar := 0; liar < 4; liar += 3 { // the first is the reference
							// Else nobody can tell. Who says that it was set by less is believed for a
							// window.
							if (each || both) && (!begins.flagged || size >= 500*time.Millisecond) && !thin.Skips(t) {
								name := fmt.Sprintf("%v from %v flagged %v each %v both %v liar %d", time.Duration(by), time.Duration(begins.from), begins.flagged, each, both, liar)
								t.Run(name, func(t *testing.T) {
									w := newTold(t, 5)
									w.liar, w.from, w.flagged, w.both = liar, begins.from, begins.flagged, both
									w.lie = func(peer int) int64 {
										if each {
											return by * int64(peer+1)
										}
										return by
									}
									w.findsLiar()
								})
							}
						}
					}
				}
			}
		}
	}
}

func (w *meshTold) findsLiar() {
	w.t.Helper()
	windows, leads := 50, w.liar == 0 && w.from > 0 && w.both && distance(w.lie(w.hosts-1), 0) >= sec
	if w.flagged || leads {
		windows = 80 // it may have been set until then
	}
	for n := range windows {
		if w.window(); n > 2 && !leads {
			w.honestHold()
		}
	}
	accused := w.accused()
	host := fmt.Sprintf("h%d", w.liar)
	assert.Contains(w.t, accused[host], model.ClassUntrusted)
	if !leads {
		delete(accused, host)
		assert.Empty(w.t, accused, "honest hosts")
	}
}

// Who lies now and then by less than a window, and is found for that, moves nobody else.
func TestWhoLiesNowAndThenMovesNobody(t *testing.T) {
	for _, by := range []int64{50e6, -50e6, 200e6} {
		for liar := 0; liar < 4; liar += 3 { // the first is the reference
			t.Run(fmt.Sprintf("%v liar %d", time.Duration(by), liar), func(t *testing.T) {
				w := newTold(t, 5)
				w.liar, w.from = liar, 20*sec
				w.lie = func(int) int64 {
					if (w.now-w.from-1)/(5*windowN)%2 == 0 {
						return by
					}
					return 0
				}
				w.findsLiar()
			})
		}
	}
}

// Who says in all that it tells that it was set is found only if it tells everybody another
// time, but moves nobody else.
func TestWhoSaysThatItIsAlwaysSetMovesNobody(t *testing.T) {
	for _, by := range []int64{5 * sec, 60 * sec} {
		for liar := 0; liar < 4; liar += 3 {
			for _, each := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v liar %d each %v", time.Duration(by), liar, each), func(t *testing.T) {
					w := newTold(t, 5)
					w.liar, w.always = liar, true
					w.lie = func(peer int) int64 {
						if each {
							return by * int64(peer+1)
						}
						return by
					}
					for n := range 50 {
						if w.window(); n > 2 {
							w.honestHold()
						}
					}
					accused, host := w.accused(), fmt.Sprintf("h%d", liar)
					assert.Equal(t, each, slices.Contains(accused[host], model.ClassUntrusted))
					delete(accused, host)
					assert.Empty(t, accused, "honest hosts")
				})
			}
		}
	}
}

// A clock that is set contradicts itself while some tell late of it, and is not accused.
func TestWhoIsSetIsNotAccusedHoweverLateSomeTell(t *testing.T) {
	thin := tier.Thin{Every: 3}
	for _, size := range []time.Duration{1500 * time.Millisecond, 5 * time.Second, 20 * time.Second, 40 * time.Second} {
		for _, by := range []int64{int64(size), -int64(size)} {
			for _, late := range []int{0, 2, 10, 14} { // windows; 2 and 10 are about as long as the step
				for _, flagged := range []bool{true, false} {
					for set := 0; set < 4; set += 3 { // the first is the reference
						name := fmt.Sprintf("%v late by %d windows flagged %v set %d", time.Duration(by), late, flagged, set)
						for _, per := range []int{1, 4} {
							if per > 1 && (late != 10 || size != 5*time.Second) || thin.Skips(t) {
								continue
							}
							t.Run(fmt.Sprintf("%s %d solutions", name, per), func(t *testing.T) {
								w := newTold(t, 5)
								w.per = per
								w.set(raw(set), 10*windowN+windowN/4, by)
								w.tellsLate(late, func(e *model.ClockEdge) {
									e.Stepped = flagged && w.now == 11*windowN && (e.Src == raw(set) || e.Dst == raw(set))
								})
								for _, f := range w.findings {
									assert.NotEqual(t, model.ClassUntrusted, f.Class, "%s at %v: %s", f.Clock, time.Duration(f.Time-epoch), f.Evidence)
								}
							})
						}
					}
				}
			}
		}
	}
}

// tellsLate lets two hosts tell of each window so many windows later.
func (w *meshTold) tellsLate(late int, change func(e *model.ClockEdge)) {
	w.t.Helper()
	var waiting [][]model.ClockEdge
	for range 60 {
		w.now += windowN
		var now, later []model.ClockEdge
		for _, e := range w.edges() {
			change(&e)
			if host := parse(e.Src).host; host == "h1" || host == "h2" {
				later = append(later, e)
			} else {
				now = append(now, e)
			}
		}
		if waiting = append(waiting, later); len(waiting) > late {
			now, waiting = append(now, waiting[0]...), waiting[1:]
		}
		w.take(now)
	}
}

// take adds edges, and solves so many times meanwhile.
func (w *meshTold) take(edges []model.ClockEdge) {
	w.t.Helper()
	per := max(1, w.per)
	for n := range per {
		for _, e := range edges[n*len(edges)/per : (n+1)*len(edges)/per] {
			require.NoError(w.t, w.tl.AddEdge(e))
		}
		w.advance()
	}
}
