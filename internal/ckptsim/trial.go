// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Trial is a job that is in the midst of a save, after others.
type Trial struct {
	Job   *Job
	Saves []*Save // all, the one that is being made last
	disk  *Disk   // before the last save
}

// NewTrial has a job make saves at the given epochs, of which the last one is not begun yet.
// It keeps keep of them, and deletes the oldest after that.
func NewTrial(j *Job, keep int, epochs ...int64) (*Trial, error) {
	t := &Trial{Job: j, disk: NewDisk()}
	for i, e := range epochs {
		var old *Save
		if i >= keep {
			old = t.Saves[i-keep]
		}
		t.Saves = append(t.Saves, j.Save(e, old))
	}
	for _, s := range t.Saves[:len(t.Saves)-1] {
		if err := t.make(s, s.Steps(), rand.New(rand.NewPCG(uint64(s.Epoch), 0))); err != nil { //nolint:gosec // a seed, no secret
			return nil, err
		}
	}
	return t, nil
}

// make does so many operations of a save, and lets them reach the disk.
func (t *Trial) make(s *Save, steps int, rng *rand.Rand) error {
	if err := Start(s).Advance(t.disk, steps, rng); err != nil {
		return fmt.Errorf("prepare %s: %w", t.Job.Name, err)
	}
	t.disk.Settle()
	return nil
}

// Steps is how many operations the last save has.
func (t *Trial) Steps() int { return t.Saves[len(t.Saves)-1].Steps() }

// At returns what is found where the last save was cut off after so many operations.
func (t *Trial) At(steps int, c Crash, rng *rand.Rand) (*State, error) {
	d := t.disk.Clone()
	if err := Start(t.Saves[len(t.Saves)-1]).Advance(d, steps, rng); err != nil {
		return nil, fmt.Errorf("crash %s: %w", t.Job.Name, err)
	}
	return d.Crashed(c, rng), nil
}

// Singles returns every state after the whole save in which one thing is lost.
func (t *Trial) Singles(rng *rand.Rand) ([]*State, error) {
	d := t.disk.Clone()
	if err := Start(t.Saves[len(t.Saves)-1]).Advance(d, t.Steps(), rng); err != nil {
		return nil, fmt.Errorf("crash %s: %w", t.Job.Name, err)
	}
	return d.Singles(), nil
}

// Trials makes trials of one job. Its trials share their saves, which are not to be changed.
type Trials struct {
	job   *Job
	saves map[identity]*Save
}

// identity tells the saves of a job apart.
type identity struct {
	world          int
	epoch, attempt int64
}

// NewTrials returns the trials of a job.
func NewTrials(j *Job) *Trials { return &Trials{job: j, saves: map[identity]*Save{}} }

// save returns a save of the job as if so many ranks saved.
func (ts *Trials) save(world int, epoch, attempt int64) *Save {
	of := identity{world, epoch, attempt}
	if s, made := ts.saves[of]; made {
		return s
	}
	j := *ts.job
	j.World = world
	s := j.attempt(epoch, attempt, nil)
	ts.saves[of] = s
	return s
}

// AfterCrashes has the job begin saves at the given epochs, of which the last one is not
// begun yet. Each of the others may have been killed on its way, and nothing was cleared away:
// the job went on at the next epoch. More ranks saved than save now, by the given number.
func (ts *Trials) AfterCrashes(ranks int, rng *rand.Rand, epochs ...int64) (*Trial, error) {
	t := &Trial{Job: ts.job, disk: NewDisk()}
	last := len(epochs) - 1
	for _, e := range epochs[:last] {
		s := ts.save(ts.job.World+ranks, e, 0)
		t.Saves = append(t.Saves, s)
		if err := t.make(s, min(s.Steps(), rng.IntN(2*s.Steps())), rng); err != nil {
			return nil, err
		}
	}
	t.Saves = append(t.Saves, ts.save(ts.job.World, epochs[last], 0))
	return t, nil
}

// Restart is how long a job takes to come back and to reach an epoch again: the least that is seen.
const Restart = time.Minute

// Again has the job save at one epoch a second time, after the first attempt was cut off
// or the job went back to an earlier epoch. The second attempt is not begun yet.
func (ts *Trials) Again(rng *rand.Rand) (*Trial, error) {
	world := ts.job.World
	t := &Trial{Job: ts.job, disk: NewDisk(), Saves: []*Save{ts.save(world, 10, 0), ts.save(world, 20, 0), ts.save(world, 20, 1)}}
	for i, s := range t.Saves[:2] {
		steps := s.Steps()
		if i == 1 {
			steps = min(steps, rng.IntN(2*steps))
		}
		if err := t.make(s, steps, rng); err != nil {
			return nil, err
		}
	}
	t.disk.clock += Restart.Microseconds()
	return t, nil
}
