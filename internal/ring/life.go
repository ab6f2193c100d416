// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"math"
	"os"
	"time"
)

// DeathSilence is how old the heartbeat of a process must be, beside its lock not
// being held, for it to count as dead. A process that closes any descriptor of the
// file loses the lock while it lives; its own thread, which gives the heartbeat,
// takes it again within a second.
const DeathSilence = 3 * time.Second

// noBoot is the id of a boot that the producer could not read.
const noBoot = "00000000-0000-0000-0000-000000000000"

// Silence is how long ago the process gave its last sign of life: of this boot by
// its heartbeat, of another one for ever. Where one of the two boots is unknown,
// they are taken for one. Where there is no heartbeat yet, the ring's making counts.
func (r *Ring) Silence() time.Duration {
	if boot := r.shape.BootID; boot != BootID() && boot != noBoot && BootID() != "" {
		return math.MaxInt64
	}
	beat, now := max(r.Heartbeat(), r.shape.Created), Now()
	if beat > now { // no clock of this boot: it says nothing
		return math.MaxInt64
	}
	return time.Duration(min(now-beat, math.MaxInt64))
}

// Dead reports whether the process ended without closing its ring: nobody holds
// the lock, and it has been silent for Options.DeadAfter. The lock is asked for after
// the heartbeat, which its holder writes at the same time.
func (r *Ring) Dead() (bool, error) {
	if r.err != nil {
		return false, r.err
	}
	if r.Silence() < r.deadAfter {
		return false, r.err
	}
	alive, closed, err := r.Alive()
	return err == nil && !alive && !closed, err
}

// Remove removes the ring of a process that ended. It asks anew: path must still
// name the file opened, nobody may hold its lock, and it must have been silent
// for the time given. What is refused is an *Error.
func Remove(path string, opened os.FileInfo, silent time.Duration) error {
	r, err := Open(path, Options{})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read from
	if err := r.removable(opened, silent); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return failed(path, "file", err, "permission to remove it")
	}
	return nil
}

func (r *Ring) removable(opened os.FileInfo, silent time.Duration) error {
	now, err := r.file.Stat()
	if err != nil {
		return failed(r.path, "file", err, "its status")
	}
	if opened == nil || !os.SameFile(opened, now) {
		return refuse(r.path, "file", "another file under this name", "the one that was read to its end")
	}
	if s := r.Silence(); s < silent {
		return refuse(r.path, "heartbeat", fmt.Sprintf("%v ago", s.Round(time.Millisecond)), fmt.Sprintf("at least %v, to remove it", silent))
	}
	held, err := locked(r.file)
	if err != nil {
		return failed(r.path, "lock", err, "to ask for its holder")
	}
	if held {
		return refuse(r.path, "lock", "held by a process", "one that nobody holds, to remove it")
	}
	return nil
}
