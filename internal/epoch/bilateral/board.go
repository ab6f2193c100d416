// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Errors that callers tell apart.
var (
	// ErrConflict: it contradicts what others of the job have said.
	ErrConflict = errors.New("conflict")
	// ErrFull: there is no room.
	ErrFull = errors.New("full")
	// ErrHeld: a domain is held by a process at another address.
	ErrHeld = errors.New("held")
)

// Config bounds a board.
type Config struct {
	MaxJobs int
	// MaxDomains bounds the domains of all jobs together.
	MaxDomains int
	// PeerJobs and PeerDomains bound what one address may hold of these; 0: as much as all.
	PeerJobs, PeerDomains int
	// Silent is after which time a job that nobody tells of is forgotten.
	Silent time.Duration
}

// Stats are counters of a board, and how much it holds.
type Stats struct {
	Forgotten int64 // jobs, that were silent for long or made room
	Left      int64 // domains that made room for others of their jobs
	Unsaid    int64 // changes of forgotten jobs for which there was no room
	Jobs      int
	Domains   int
}

// Board is where the domains of jobs tell how far they are. It is safe for concurrent use.
type Board struct {
	cfg Config

	mu       sync.Mutex
	jobs     *bounded.Map[key, *job] // the one that was heard longest ago in front
	peers    map[string]*share
	members  int
	revision int64
	stats    Stats
	// pass are the jobs of which is still to be told in the pass that is under way, of what has changed or
	// of all.
	pass    []key
	passAll bool
	gone    [][]Change // of jobs that were forgotten, each of one
}

// maxGone bounds the lists of what is to be told of forgotten jobs: more than are forgotten before somebody
// takes them, but where nobody does.
const maxGone = 4096

// New returns a board that has heard nothing.
func New(cfg Config) *Board {
	if cfg.PeerJobs == 0 {
		cfg.PeerJobs = cfg.MaxJobs
	}
	if cfg.PeerDomains == 0 {
		cfg.PeerDomains = cfg.MaxDomains
	}
	return &Board{cfg: cfg, jobs: newJobs(), peers: map[string]*share{}}
}

// Until is what a domain waits for.
type Until struct {
	// State is how far all are to be with the attempt at Epoch that the domain holds; 0: it waits
	// for all to take part in its session, or for a session if it has none that still is.
	State State
	Epoch int64
	// Missing: it wants to know who it waits for.
	Missing bool
}

// Tell takes what a domain tells, and returns what all have told.
func (b *Board) Tell(t *Tell, until Until, now time.Time) (Answer, error) {
	a, _, err := b.tell(t, until, now)
	return a, err
}

// Wait is as Tell, and waits for what is asked until the context ends. What came until then is
// returned, too.
func (b *Board) Wait(ctx context.Context, t *Tell, until Until) (Answer, error) {
	a, changed, err := b.tell(t, until, time.Now())
	for err == nil {
		var rested <-chan time.Time
		if until.met(t, &a) {
			if a.rest <= 0 {
				break
			}
			rested = time.After(a.rest)
		}
		select {
		case <-changed:
		case <-rested:
		case <-ctx.Done():
			return a, nil
		}
		a, changed = b.look(t, until, time.Now())
	}
	return a, err
}

func (b *Board) tell(t *Tell, until Until, now time.Time) (Answer, <-chan struct{}, error) {
	if err := t.Check(); err != nil {
		return Answer{}, nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	j, err := b.job(t, now)
	if err == nil {
		was, left := j.members.Len(), len(j.left)
		err = j.take(t, now)
		b.members += j.members.Len() - was
		b.stats.Left += int64(len(j.left) - left)
	}
	if err != nil {
		return Answer{}, nil, fmt.Errorf("tell job %q: %w", t.Job, err)
	}
	b.heard(j)
	if j.session != "" && j.joined[j.session] == j.domains && j.met != j.session {
		j.met = j.session
		b.goesOn(key{t.Job, t.Domains}, now)
	}
	return j.tellMissing(t, until, now), j.changed, nil
}

// look is what there is to be told now. Who was forgotten meanwhile waits for nothing that could come.
func (b *Board) look(t *Tell, until Until, now time.Time) (Answer, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j, ok := b.jobs.Peek(key{t.Job, t.Domains})
	if !ok {
		return Answer{Domains: t.Domains}, nil
	}
	return j.tellMissing(t, until, now), j.changed
}

// goesOn notes that a job of another number of domains is over, since all of this one have met. One that
// speaks lives, whatever others say of its name: it is over once it is silent.
func (b *Board) goesOn(with key, now time.Time) {
	for k, j := range b.jobs.All() {
		if k.name == with.name && k.domains != with.domains {
			j.superseded = true
			j.endIfSilent(now)
		}
	}
}

// restFor is for how long no life must have begun before all are told of the session anew: where a
// whole job begins, one answer will do for each domain instead of one for each that begins.
const restFor = 250 * time.Millisecond

func (j *job) tellMissing(t *Tell, until Until, now time.Time) Answer {
	a := j.answer(t)
	if until.State == 0 && a.Joined < a.Domains {
		a.rest = restFor - now.Sub(j.begun)
	}
	if until.Missing && !until.met(t, &a) {
		of := need{state: until.State}
		if i := slices.IndexFunc(t.Slots, func(s Slot) bool { return s.Epoch == until.Epoch }); i >= 0 && until.State != 0 {
			of.attempt = t.Slots[i].Attempt
		}
		m := j.lacking(of, now)
		a.Missing, a.MissingCount = m.names, m.count
	}
	return a
}

// met reports whether there is nothing to wait for any more.
func (u Until) met(t *Tell, a *Answer) bool {
	if u.State == 0 {
		return a.Session != "" && (a.Session != t.Session || a.Joined == a.Domains)
	}
	i := slices.IndexFunc(a.Saves, func(c Count) bool { return c.Epoch == u.Epoch })
	return i < 0 || a.Saves[i].Reached(u.State) == a.Domains
}

// job finds a teller's job, or makes it where there is room for it.
func (b *Board) job(t *Tell, now time.Time) (*job, error) {
	k := key{t.Job, t.Domains}
	j, known := b.jobs.Peek(k)
	if !known || j.members.Len() < j.domains && !j.members.Has(t.Domain) {
		for b.shareOf(t.Peer).domains >= b.cfg.PeerDomains {
			if !b.makeRoom(b.shareOf(t.Peer).jobs, k, now) {
				return nil, fmt.Errorf("%w: got one domain more of this address; want at most %d", ErrFull, b.cfg.PeerDomains)
			}
		}
		for b.members >= b.cfg.MaxDomains {
			if !b.makeRoom(b.jobs, k, now) {
				return nil, fmt.Errorf("%w: got one domain more; want at most %d of all jobs", ErrFull, b.cfg.MaxDomains)
			}
		}
	}
	if known {
		return j, nil
	}
	if s := b.shareOf(t.Peer); s.jobs.Len() >= b.cfg.PeerJobs && !b.makeRoom(s.jobs, k, now) {
		return nil, fmt.Errorf("%w: got one job more of this address; want at most %d", ErrFull, b.cfg.PeerJobs)
	}
	if b.jobs.Len() >= b.cfg.MaxJobs && !b.makeRoom(b.jobs, k, now) {
		return nil, fmt.Errorf("%w: got one job more; want at most %d", ErrFull, b.cfg.MaxJobs)
	}
	return b.begin(k, t.Peer), nil
}

// makeRoom forgets the job beside one that has been silent for longest, where that is long.
func (b *Board) makeRoom(jobs *bounded.Map[key, *job], beside key, now time.Time) bool {
	k, j, ok := jobs.OldestWhere(func(k key, _ *job) bool { return k != beside })
	if !ok || now.Sub(j.heard) < idle {
		return false
	}
	b.forget(k)
	return true
}

// Forget leaves the jobs that nobody has told of for long.
func (b *Board) Forget(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, j := range b.jobs.All() {
		if now.Sub(j.heard) >= b.cfg.Silent {
			b.forget(k)
			continue
		}
		j.endIfSilent(now)
	}
}

// forget forgets a job. Of what not all of it held nobody would tell any more that it is over; what all held
// stays said.
func (b *Board) forget(k key) {
	j, _ := b.jobs.Peek(k)
	j.over, j.dirty = true, true
	list := slices.DeleteFunc(b.changes(k, false), func(c Change) bool { return c.State != model.DomainWithdrawn })
	switch {
	case len(list) == 0:
	case len(b.gone) < maxGone:
		b.gone = append(b.gone, list)
	default:
		b.stats.Unsaid += int64(len(list))
	}
	b.remove(j)
	b.stats.Forgotten++
	close(j.changed)
}

// Stats returns the counters.
func (b *Board) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Jobs, s.Domains = b.jobs.Len(), b.members
	return s
}
