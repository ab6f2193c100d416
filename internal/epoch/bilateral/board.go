package bilateral

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Errors that callers tell apart.
var (
	// ErrConflict: it contradicts what others of the job have said.
	ErrConflict = errors.New("conflict")
	// ErrFull: there is no room.
	ErrFull = errors.New("full")
)

// Config bounds a board.
type Config struct {
	MaxJobs int
	// MaxDomains bounds the domains of all jobs together.
	MaxDomains int
	// Silent is after which time a job that nobody tells of is forgotten.
	Silent time.Duration
}

// Stats are counters of a board, and how much it holds.
type Stats struct {
	Told      int64 // by domains
	Conflicts int64
	Overflows int64 // for want of room
	Forgotten int64 // jobs
	Jobs      int
	Domains   int
}

// Board is where the domains of jobs tell how far they are. It is safe for concurrent use.
type Board struct {
	cfg Config

	mu       sync.Mutex
	jobs     map[key]*job
	members  int
	revision int64
	stats    Stats
}

// New returns a board that has heard nothing.
func New(cfg Config) *Board { return &Board{cfg: cfg, jobs: map[key]*job{}} }

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
	for err == nil && !until.met(t, &a) {
		select {
		case <-changed:
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
	j, err := b.job(t)
	if err == nil {
		was := len(j.members)
		err = j.take(t, now)
		b.members += len(j.members) - was
	}
	b.count(err)
	if err != nil {
		return Answer{}, nil, fmt.Errorf("tell job %q: %w", t.Job, err)
	}
	return j.tellMissing(t, until, now), j.changed, nil
}

// look is what there is to be told now. Who was forgotten meanwhile waits for nothing that could come.
func (b *Board) look(t *Tell, until Until, now time.Time) (Answer, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[key{t.Job, t.Domains}]
	if j == nil {
		return Answer{Domains: t.Domains}, nil
	}
	return j.tellMissing(t, until, now), j.changed
}

func (j *job) tellMissing(t *Tell, until Until, now time.Time) Answer {
	a := j.answer(t)
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
func (b *Board) job(t *Tell) (*job, error) {
	k := key{t.Job, t.Domains}
	j := b.jobs[k]
	switch {
	case (j == nil || j.members[t.Domain] == nil) && b.members >= b.cfg.MaxDomains:
		return nil, fmt.Errorf("%w: got one domain more; want at most %d of all jobs", ErrFull, b.cfg.MaxDomains)
	case j != nil:
		return j, nil
	case len(b.jobs) >= b.cfg.MaxJobs:
		return nil, fmt.Errorf("%w: got one job more; want at most %d", ErrFull, b.cfg.MaxJobs)
	}
	j = newJob(t.Domains)
	b.jobs[k] = j
	return j, nil
}

func (b *Board) count(err error) {
	switch {
	case errors.Is(err, ErrConflict):
		b.stats.Conflicts++
	case errors.Is(err, ErrFull):
		b.stats.Overflows++
	default:
		b.stats.Told++
	}
}

// Forget leaves the jobs that nobody has told of for long.
func (b *Board) Forget(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.jobs, func(_ key, j *job) bool {
		if now.Sub(j.heard) < b.cfg.Silent {
			return false
		}
		b.members -= len(j.members)
		b.stats.Forgotten++
		close(j.changed)
		return true
	})
}

// Stats returns the counters.
func (b *Board) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Jobs, s.Domains = len(b.jobs), b.members
	return s
}
