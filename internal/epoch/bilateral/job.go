// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
)

// key is a job with so many domains: with more or fewer, it holds its saves in other parts.
type key struct {
	name    string
	domains int
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.name, o.name), cmp.Compare(k.domains, o.domains))
}

// job is what is known of the domains of one.
type job struct {
	key

	owner string // the address that it counts for
	count func(peer string, domains int)

	members *bounded.Map[string, *member] // the one that was heard longest ago in front
	mark    [sha256.Size]byte             // exclusive or of the members'
	session string                        // of all members' lives, empty until all are heard
	joined  map[string]int                // members by the session that they take part in
	// far counts per attempt the members that are at least so far.
	far     map[Attempt]*[Committed + 1]int
	heard   time.Time
	begun   time.Time                   // when a life was first heard last
	changed chan struct{}               // closed when what somebody may wait for has come
	missing *bounded.Map[need, missing] // the one that was found longest ago in front
	left    []*member                   // members that made room since the last call of changes
	met     string                      // the session that all have taken part in last
	// superseded: all of another number of domains have met. over: and the job has been silent since.
	superseded, over bool
	dirty            bool // there may be something to say
}

// member is what one domain told last.
type member struct {
	name     string
	peer     string // the address that it spoke from last
	life     string
	sequence int64
	session  string
	slots    []Slot
	heard    time.Time
	// former are lives that are over: what comes of them late is not heard.
	former []string
	told   map[int64]said // of it, by epoch
}

// maxFormer bounds the former lives that are known of a domain: who is started anew more often has none
// of the first alive.
const maxFormer = 16

// maxAttempts bounds the attempts that are counted for a job: twice what domains that are in step hold,
// for each of which some may hold the same epochs of another attempt.
const maxAttempts = 4 * MaxSlots

func newJob(k key) *job {
	return &job{
		key: k, members: bounded.NewMap(bounded.MapConfig[string, *member]{Order: bounded.ByUse}), joined: map[string]int{}, far: map[Attempt]*[Committed + 1]int{},
		changed: make(chan struct{}), missing: bounded.NewMap(bounded.MapConfig[need, missing]{Entries: maxAttempts * int(Committed), Order: bounded.ByUse}),
	}
}

// idle is after which time without a word a domain, or a job, makes room for others: twenty beats of
// one that lives.
const idle = 5 * time.Minute

// lively is how long after a message a process counts as alive: two heartbeats. Until then no other process
// gets its domain, and its job continues.
const lively = 30 * time.Second

// take takes what a domain tells. What is refused changes nothing.
func (j *job) take(t *Tell, now time.Time) error {
	m, known := j.members.Peek(t.Domain)
	full := !known && j.members.Len() >= j.domains
	var silent *member
	if full {
		silent = j.silent(now)
	}
	switch {
	case full && silent == nil:
		return fmt.Errorf("%w: check domain: got %q; want one of the %d that the job has", ErrConflict, t.Domain, j.domains)
	case m != nil && slices.Contains(m.former, t.Life):
		return fmt.Errorf("%w: check life of %q: got that of a process after which another has begun; want the newest", ErrConflict, t.Domain)
	case m != nil && m.life != t.Life && m.peer != t.Peer && now.Sub(m.heard) < lively:
		return fmt.Errorf("%w: check life of %q: got another process at another address; want the one that spoke %v ago, or %v of silence",
			ErrHeld, t.Domain, now.Sub(m.heard).Round(time.Millisecond), lively)
	case !j.countable(m, t.Slots):
		return fmt.Errorf("%w: check slots of %q: got attempts that others of the job have none of; want at most %d attempts in all", ErrFull, t.Domain, maxAttempts)
	}
	if full {
		j.leave(silent)
	}
	j.heard = now
	j.dirty, j.over, j.superseded = j.dirty || j.over, false, false
	if m == nil {
		m = &member{name: t.Domain, peer: t.Peer, told: j.back(t.Domain)}
		j.dirty = true
		j.count(t.Peer, 1)
	}
	if m.peer != t.Peer {
		j.count(m.peer, -1)
		j.count(t.Peer, 1)
		m.peer = t.Peer
	}
	m.heard = now
	j.members.Set(t.Domain, m)
	if m.life == t.Life && t.Sequence <= m.sequence {
		return nil // it was on its way for longer than what is known
	}
	j.live(t.Domain, m, t.Life, now)
	m.sequence = t.Sequence
	j.join(m, t.Session)
	j.dirty = j.hold(m, t.Slots) || j.dirty
	return nil
}

// countable reports whether there is room for attempts that are new.
func (j *job) countable(m *member, slots []Slot) bool {
	room := maxAttempts - len(j.far)
	for _, s := range slots {
		if j.far[s.Attempt] == nil {
			room--
		}
	}
	if m != nil && room < 0 { // those that it alone has held go
		for _, s := range m.slots {
			if j.far[s.Attempt][Tentative] == 1 && !slices.ContainsFunc(slots, func(o Slot) bool { return o.Attempt == s.Attempt }) {
				room++
			}
		}
	}
	return room >= 0
}

// silent is the member that has been silent for longest, where that is long.
func (j *job) silent(now time.Time) *member {
	if _, m, ok := j.members.Oldest(); ok && now.Sub(m.heard) >= idle {
		return m
	}
	return nil
}

// leave has a member make room for another.
func (j *job) leave(m *member) {
	j.hold(m, nil)
	j.join(m, "")
	j.stir(m.name, m.life)
	j.members.Delete(m.name)
	j.count(m.peer, -1)
	j.left = append(j.left, m)
}

// endIfSilent has a job be over that has been superseded and does not speak.
func (j *job) endIfSilent(now time.Time) {
	if j.superseded && !j.over && now.Sub(j.heard) >= lively {
		j.over, j.dirty = true, true
	}
}

// back is what was said of a domain that made room and comes back before that was told.
func (j *job) back(name string) map[int64]said {
	for i := range j.left {
		if m := j.left[i]; m.name == name {
			j.left = slices.Delete(j.left, i, i+1)
			return m.told
		}
	}
	return map[int64]said{}
}

// live notes the life of a member, and with it the session.
func (j *job) live(domain string, m *member, life string, now time.Time) {
	if m.life == life {
		return
	}
	if m.life != "" {
		j.stir(domain, m.life)
		m.former = append(m.former, m.life)
		m.former = m.former[max(0, len(m.former)-maxFormer):]
	}
	m.life, j.begun = life, now
	j.stir(domain, life)
	j.resession()
}

// stir puts a member's life into the mark, or takes it out again.
func (j *job) stir(domain, life string) {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q", domain, life))
	for i := range j.mark {
		j.mark[i] ^= h[i]
	}
}

// resession names the session of the lives that are heard.
func (j *job) resession() {
	if j.members.Len() < j.domains {
		j.session = ""
		return
	}
	j.session = hex.EncodeToString(j.mark[:16])
	j.wake()
}

func (j *job) join(m *member, session string) {
	if m.session == session {
		return
	}
	if m.session != "" {
		if j.joined[m.session]--; j.joined[m.session] == 0 {
			delete(j.joined, m.session)
		}
	}
	if m.session = session; session == "" {
		return
	}
	if j.joined[session]++; j.joined[session] == j.domains {
		j.wake()
	}
}

// hold notes what a member holds.
func (j *job) hold(m *member, slots []Slot) bool {
	if slices.Equal(m.slots, slots) {
		return false
	}
	was := m.slots
	m.slots = slices.Clone(slots)
	for _, s := range m.slots {
		j.move(s.Attempt, stateOf(was, s.Attempt), s.State)
	}
	for _, s := range was {
		if stateOf(m.slots, s.Attempt) == 0 {
			j.move(s.Attempt, s.State, 0)
		}
	}
	return true
}

// stateOf is how far slots are with an attempt, 0 where they have none of it.
func stateOf(slots []Slot, at Attempt) State {
	for i := range slots {
		if slots[i].Attempt == at {
			return slots[i].State
		}
	}
	return 0
}

// move counts that a member came from one state of an attempt to another.
func (j *job) move(at Attempt, from, to State) {
	n := j.far[at]
	if n == nil {
		n = new([Committed + 1]int)
		j.far[at] = n
	}
	for s := from + 1; s <= to; s++ {
		if n[s]++; n[s] == j.domains {
			j.wake()
		}
	}
	for s := to + 1; s <= from; s++ {
		n[s]--
	}
	if n[Tentative] == 0 {
		delete(j.far, at)
	}
}

// wake has all who wait look anew.
func (j *job) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}
