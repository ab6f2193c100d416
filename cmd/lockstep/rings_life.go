// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// ringLife is what a ring shows of its process.
type ringLife struct {
	held, closed, dead bool
	otherBoot          bool          // its times have nothing in common with ours
	beat, now          uint64        // the last heartbeat, and when that was read
	silent             time.Duration // between the two, where they can be compared
	pid                int           // of the process that holds the ring
	process            model.ProcessState
}

func lifeOf(r *ring.Ring) (l ringLife, err error) {
	if l.dead, err = r.Dead(); err != nil {
		return l, err
	}
	if l.held, l.closed, err = r.Alive(); err != nil {
		return l, err
	}
	if pid, ok := r.Holder(); ok {
		l.pid, l.process = pid, rankevents.ProcessState(pid)
	}
	h := r.Header()
	l.otherBoot = h.BootID != unknownBoot && ring.BootID() != "" && h.BootID != ring.BootID()
	// The clock last, so that no heartbeat lies ahead of it that need not.
	l.beat = max(r.Heartbeat(), h.Created)
	l.now = ring.Now()
	l.silent = age(l.now, l.beat)
	return l, r.Err()
}

// unknownBoot is the boot of a process that could not read its id.
const unknownBoot = "00000000-0000-0000-0000-000000000000"

func (l *ringLife) words() string {
	switch {
	case l.closed:
		return "closed, " + l.lastBeat()
	case l.held && heldWords[l.process] != "":
		return fmt.Sprintf("process %d is %s, %s", l.pid, heldWords[l.process], l.lastBeat())
	case l.held && l.silent > ring.DeathSilence && !l.otherBoot:
		return fmt.Sprintf("live, but no heartbeat for %.1fs: stopped, or starved of CPU", l.silent.Seconds())
	case l.held:
		return "live, " + l.lastBeat()
	case l.dead:
		return "the process died, " + l.lastBeat()
	}
	return fmt.Sprintf("no lock, but a heartbeat %v ago: alive, or just died", l.silent)
}

// heldWords say how the kernel holds a process that lives.
var heldWords = map[model.ProcessState]string{
	model.ProcessStopped: "stopped by a signal (kill -CONT lets it go on)",
	model.ProcessTraced:  "stopped by a debugger",
	model.ProcessFrozen:  "frozen with its cgroup",
}

func (l *ringLife) lastBeat() string {
	switch {
	case l.otherBoot:
		return "last heartbeat of another boot"
	case l.beat > l.now:
		return "last heartbeat in the future"
	}
	return fmt.Sprintf("last heartbeat %v ago", l.silent)
}

// until is up to when operations have been open: now, and of a process that
// ended or of another boot the last that it is known to have done.
func (l *ringLife) until(open []ring.Slot) uint64 {
	if !l.dead && !l.closed && !l.otherBoot {
		return ring.Now()
	}
	last := l.beat
	for i := range open {
		last = max(last, open[i].Last, open[i].Record.EnqueueBegin())
	}
	return last
}

// age is the time since a stamp; 0 for one that lies ahead.
func age(now, at uint64) time.Duration {
	if at > now {
		return 0
	}
	return time.Duration(min(now-at, math.MaxInt64)).Round(time.Millisecond)
}

// printable replaces what would steer a terminal: names of files are a stranger's.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return unicode.ReplacementChar
		}
		return c
	}, s)
}
