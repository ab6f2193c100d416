// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Answer is what a domain is told: what all have said.
type Answer struct {
	Domains int
	Heard   int    // domains
	Session string // of all that are heard; empty while some are not
	Joined  int    // domains that take part in Session
	// Recoverable is the newest attempt of which every domain holds its part, once all take part in
	// Session.
	Recoverable model.Optional[Attempt]
	// Lost is the newest attempt after it that somebody knows all to have held, and that not all hold
	// now.
	Lost model.Optional[Attempt]
	// Saves are those that the domain holds, in the order in which it told them.
	Saves []Count
	// Missing are the first of those that are waited for, MissingCount how many they are; of who asked
	// for them.
	Missing      []string
	MissingCount int

	rest time.Duration // until lives have come to rest, of who waits for a session
}

// Count is how many domains are how far with an attempt.
type Count struct {
	Attempt

	Tentative, Reflecting, Committed int // at least so far
}

// Reached is how many are at least so far.
func (c *Count) Reached(s State) int {
	return [...]int{Tentative: c.Tentative, Reflecting: c.Reflecting, Committed: c.Committed}[s]
}

func (j *job) answer(t *Tell) Answer {
	a := Answer{Domains: j.domains, Heard: j.members.Len(), Session: j.session}
	if j.session != "" {
		a.Joined = j.joined[j.session]
	}
	if a.Joined == j.domains {
		j.recoverable(&a)
	}
	for _, s := range t.Slots {
		n := j.far[s.Attempt]
		if n == nil { // a later tell of this domain was heard
			n = new([Committed + 1]int)
		}
		a.Saves = append(a.Saves, Count{s.Attempt, n[Tentative], n[Reflecting], n[Committed]})
	}
	return a
}

// recoverable finds what all hold, and what all must have held and do not.
func (j *job) recoverable(a *Answer) {
	newest := func(which func(*[Committed + 1]int) bool) (found model.Optional[Attempt]) {
		for at, n := range j.far {
			if which(n) && (!found.OK || at.compare(found.V) > 0) {
				found = model.Some(at)
			}
		}
		return found
	}
	a.Recoverable = newest(func(n *[Committed + 1]int) bool { return n[Tentative] == j.domains })
	a.Lost = newest(func(n *[Committed + 1]int) bool { return n[Reflecting] > 0 && n[Tentative] < j.domains })
	if a.Lost.OK && a.Recoverable.OK && a.Lost.V.Epoch <= a.Recoverable.V.Epoch {
		a.Lost = model.Optional[Attempt]{} // it was dropped for the newer
	}
}

// need is what is waited for of all domains.
type need struct {
	attempt Attempt
	state   State // 0: that they take part in the session
}

// missing are who have not come so far as they are needed.
type missing struct {
	at    time.Time
	names []string
	count int
}

// Bounds of the lists of who is missing: people read the first few, and to find them costs a walk over
// all domains, of which as many may ask.
const (
	maxMissing     = 16
	missingStaysIn = time.Second
)

func (j *job) lacking(of need, now time.Time) missing {
	j.missing.DropOldest(func(_ need, m missing) bool { return now.Sub(m.at) >= missingStaysIn })
	if m, ok := j.missing.Peek(of); ok && now.Sub(m.at) < missingStaysIn {
		return m
	}
	out := missing{at: now}
	for name, m := range j.members.All() {
		if !m.reached(of, j.session) {
			out.names = append(out.names, name)
		}
	}
	out.count = len(out.names) + j.domains - j.members.Len()
	slices.Sort(out.names)
	out.names = slices.Clone(out.names[:min(len(out.names), maxMissing)])
	j.missing.Set(of, out)
	return out
}

func (m *member) reached(of need, session string) bool {
	if of.state == 0 {
		return session != "" && m.session == session
	}
	return slices.ContainsFunc(m.slots, func(s Slot) bool { return s.Attempt == of.attempt && s.State >= of.state })
}
