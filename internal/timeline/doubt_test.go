// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// set lets a clock read more from a moment on.
func (w *world) set(id string, at, by int64) {
	old := w.clocks[id]
	w.clocks[id] = func(a int64) int64 {
		if a >= at {
			return old(a) + by
		}
		return old(a)
	}
}

// only checks that findings are of one clock, and that there is one.
func (w *world) only(t *testing.T, class, id string) {
	t.Helper()
	named := false
	for _, f := range w.findings {
		assert.Equal(t, id, f.Clock, "%s: %s", f.Class, f.Evidence)
		named = named || f.Class == class
	}
	assert.True(t, named, "%s of %s", class, id)
}

// A raw clock that is set moves nobody: its host's real-time clock is where it was, at
// every moment, and is not said to have been set.
func TestRawIsSet(t *testing.T) {
	thin := tier.Thin{Every: 5}
	for _, hosts := range []int{3, 5, 8} {
		for _, by := range []int64{sec / 500, sec / 20, -sec / 20, -sec / 5, -sec, 5 * sec, -5 * sec, -60 * sec, -1000 * sec} {
			for host := range 2 {
				for _, late := range []int64{1, 200_000_001, 2_100_000_001} {
					if thin.Skips(t) {
						continue
					}
					t.Run(fmt.Sprintf("%d/%v/%d/%d", hosts, time.Duration(by), host, late), func(t *testing.T) {
						w := prompt(t, 92, hosts)
						w.step()
						at := w.now + late
						w.set(raw(host), at, by)
						w.changes[realtime(host)] = append(w.changes[realtime(host)], at)
						for range 40 {
							w.step()
							w.agree(hosts, at)
						}
						assert.Less(t, w.place(realtime(host), w.now).Bound, int64(20_000))
						w.only(t, model.ClassStep, raw(host))
					})
				}
			}
		}
	}
}

// agree checks that the real-time clocks of hosts stand at one time of one timeline, at any
// moment of the last two seconds.
func (w *world) agree(hosts int, changed int64) {
	w.t.Helper()
	for age := int64(0); age < 2*sec; age += sec / 4 {
		for i := range hosts {
			p, q := w.place(realtime(i), w.now-age), w.place(realtime((i+1)%hosts), w.now-age)
			w.meet(p, q, func() string {
				return fmt.Sprintf("%d %v after, %v before now", i, time.Duration(w.now-changed), time.Duration(age))
			})
		}
	}
}

// The same where nothing is told between solutions.
func TestRawIsSetBetweenWindows(t *testing.T) {
	for _, hosts := range []int{2, 3, 8} {
		for _, by := range []int64{sec / 20, -sec / 20, -sec / 5, -sec, 5 * sec, -5 * sec, -60 * sec, -1000 * sec} {
			for host := range 2 {
				t.Run(fmt.Sprintf("%d/%v/%d", hosts, time.Duration(by), host), func(t *testing.T) {
					w := cluster(t, 32, hosts)
					for range 10 {
						w.window()
					}
					w.set(raw(host), w.now, by)
					for i := range 30 {
						w.window()
						assert.True(t, w.together(realtime(host), realtime(1-host), w.now), "after %d windows", i+1)
					}
					w.only(t, model.ClassStep, raw(host))
				})
			}
		}
	}
}

// The same where only some neighbours tell in time, and the others a window later.
func TestRawIsSetAndSomeTellLate(t *testing.T) {
	for _, by := range []int64{2_000_000, 50_000_000, 5 * sec} {
		for inTime := range 3 {
			t.Run(fmt.Sprintf("%v/%d", time.Duration(by), inTime), func(t *testing.T) {
				w := prompt(t, 92, 5)
				at := w.now + half + 200_000_001
				w.set(raw(1), at, by)
				w.changes[realtime(1)] = append(w.changes[realtime(1)], at)
				var late []model.ClockEdge
				for range 40 {
					w.now += half
					whole := w.now%windowN == 0
					before := late
					for i, p := range w.pairs {
						switch e := w.edge(p[0], p[1]); {
						case w.source[p] == model.EdgePair:
							w.tell(p, half, true)
							if whole {
								w.tell(p, windowN, false)
							}
						case whole && i%3 == inTime:
							require.NoError(t, w.tl.AddEdge(e))
						case whole:
							late = append(late, e)
						}
					}
					if whole {
						for _, e := range before {
							require.NoError(t, w.tl.AddEdge(e))
						}
						late = late[len(before):]
					}
					if w.now%windowN == sec {
						w.advance()
					}
					assert.True(t, w.together(realtime(1), realtime(2), w.now), "%v after", time.Duration(w.now-at))
				}
				for _, f := range w.findings {
					assert.NotEqual(t, realtime(1), f.Clock, f.Class)
				}
			})
		}
	}
}

// Where nobody compares the host with others, the doubt ends, and the step is said to be
// undecided.
func TestNobodyElseTells(t *testing.T) {
	w := prompt(t, 96, 1)
	at := w.now + 200_000_001
	w.set(realtime(0), at, 50_000_000)
	w.changes[realtime(0)] = append(w.changes[realtime(0)], at)
	for range 4 {
		w.step()
	}
	assert.GreaterOrEqual(t, w.place(realtime(0), w.now).Bound, int64(50_000_000))
	assert.Empty(t, w.findings)
	assert.EqualValues(t, 2, w.tl.Counters().Doubted, "either of both clocks of the host")
	for range 140 {
		w.step()
	}
	assert.Zero(t, w.tl.Counters().Doubted)
	assert.Less(t, w.place(realtime(0), w.now).Bound, int64(20_000))
	require.NotEmpty(t, w.findings)
	e := numbers(t, w.findings[0])
	assert.True(t, e.Undecided)
	assert.Equal(t, raw(0), e.Other, "the two that were read together")
}

// The time service of a site sets all real-time clocks, and services that traces alone
// tell of with them. No raw clock is said to have been set, however many these are.
func TestSiteIsSet(t *testing.T) {
	for _, by := range []int64{sec, -sec, 100_000_000} {
		t.Run(time.Duration(by).String(), func(t *testing.T) {
			w := cluster(t, 7, 4)
			var ids []string
			for i := range 4 {
				ids = append(ids, realtime(i))
				for k := range 4 {
					id := fmt.Sprintf("service:s%d-%d", i, k)
					w.clocks[id] = w.clocks[realtime(i)]
					w.join(realtime((i+1)%4), id, model.EdgeCall)
					ids = append(ids, id)
				}
			}
			for range 10 {
				w.window()
			}
			for _, id := range ids {
				w.set(id, w.now, by)
			}
			for range 10 {
				w.window()
			}
			for id := range w.clocks {
				want := int64(1)
				if parse(id).raw {
					want = 0
				}
				assert.Equal(t, want, w.tl.State().clock(t, id).Steps, id)
			}
			for _, f := range w.findings {
				assert.False(t, parse(f.Clock).raw, f.Clock)
			}
		})
	}
}

// Of two hosts nothing tells which raw clock is set again and again: neither is untrusted.
func TestSetAgainOfTwo(t *testing.T) {
	for _, by := range []time.Duration{5 * time.Second, -5 * time.Second, 50 * time.Millisecond} {
		for host := range 2 {
			t.Run(fmt.Sprintf("%v/%d", by, host), func(t *testing.T) {
				w := cluster(t, 32, 2)
				for range 6 {
					w.window()
				}
				for i := range 20 {
					if i%5 == 0 {
						w.set(raw(host), w.now, by.Nanoseconds())
					}
					w.window()
				}
				steps := 0
				for _, f := range w.findings {
					assert.NotEqual(t, model.ClassUntrusted, f.Class, f.Clock)
					if f.Class == model.ClassStep && parse(f.Clock).raw {
						e := numbers(t, f)
						assert.True(t, e.Undecided, f.Clock)
						assert.ElementsMatch(t, []string{raw(0), raw(1)}, []string{f.Clock, e.Other})
						steps++
					}
				}
				assert.Positive(t, steps)
			})
		}
	}
}

// A clock that nobody compares with others any more: what was placed stays, readings keep
// their order, and what is told of it grows as it can have gone elsewhere.
func TestLeftAlone(t *testing.T) {
	w := newWorld(t, 5, Options{})
	a, b, c := "host:a/b/realtime", "host:b/b/realtime", "host:c/b/realtime"
	w.clocks[a], w.clocks[b], w.clocks[c] = linear(epoch, 0), linear(epoch+3_000_000, 0), linear(epoch, 0)
	w.join(a, b, model.EdgeCall)
	w.join(a, c, model.EdgeCall)
	for range 10 {
		w.window()
	}
	begin, old := w.now, w.clocks[b]
	w.clocks[b] = func(at int64) int64 { return old(at) + max(0, at-begin)*400/1_000_000 }
	for i := range 100 {
		w.now += windowN
		for _, p := range w.pairs {
			e := w.edge(p[0], p[1])
			if p[1] == b { // messages of one direction only
				e.Lower, e.Sigma, e.Offset, e.Drift, e.DriftBound = model.NoLower, 0, 0, 0, 0
			}
			require.NoError(t, w.tl.AddEdge(e))
		}
		before := len(w.models)
		w.advance()
		for _, m := range w.models[before:] {
			assert.NotEqual(t, b, m.Clock, "nothing new is known")
		}
		s := w.tl.State().clock(t, b)
		assert.GreaterOrEqual(t, s.BoundNow, (w.now-begin)/2000)
		assert.Equal(t, w.now-begin > silent.Nanoseconds(), s.Stale, "after %d windows", i+1)
	}
	served := w.place(b, w.now)
	w.window()
	assert.Equal(t, served.Time, w.place(b, w.now-windowN).Time, "the same reading")
	last := served.Time
	for at := w.now - windowN; at < w.now; at += sec / 100 {
		p := w.place(b, at)
		require.GreaterOrEqual(t, p.Time, last)
		last = p.Time
	}
	assert.Zero(t, w.tl.State().clock(t, b).Steps)
}
