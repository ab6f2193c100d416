// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// requestFor is how long after a request dumps count as asked for. PyTorch gives up stacks,
// which need Python's lock, after 15 s.
const requestFor = 20 * time.Second

// fileClock is how far the times of files may be behind the clock: they are of the kernel's
// last tick, or a file server's.
const fileClock = time.Second

// askedFor is when a file was asked for; zero where it was not.
func (h *dumpCollector) askedFor(written time.Time) (asked time.Time) {
	at := h.requested.Load()
	if after := time.Duration(written.UnixNano() - at); at > 0 && after >= -fileClock && after < requestFor {
		asked = time.Unix(0, at)
	}
	return asked
}

// identity returns who a rank of a job is.
func (h *dumpCollector) identity(job string, rank int64, inFile bool) model.Rank {
	name := h.cfg.JobName
	if name == "" {
		name = job
	}
	r := model.Rank{
		JobName: name, JobID: job, Rank: rank,
		Incarnation: model.Incarnation(model.World{Launcher: []string{job}}),
	}
	if h.cfg.WorldSize > 0 {
		r.WorldSize = model.Some(h.cfg.WorldSize)
	}
	if h.cfg.Local && inFile {
		r.HostName, r.HostID = h.host.Name, h.host.ID
		if h.host.ID != "" && h.host.Boot != "" {
			r.ClockID = h.host.Realtime() // PyTorch stamps by the system's clock
		}
	}
	return r
}

// state makes a rank's state of its dump. A dump that came by itself says that something
// was wrong, and not when it was written; one that was asked for is of then, or of its newest operation: finding
// names for its stacks takes seconds, in which a job that runs goes on.
func (h *dumpCollector) state(dump *flightrecorder.Dump, s *source) model.RankState {
	state := dump.State(h.identity(s.job, s.rank, s.inFile), s.name, flightrecorder.StateOptions{})
	if !s.asked.IsZero() {
		state.Time = max(s.asked.UnixNano(), state.LastEnqueue)
	}
	state.HostStack = s.host
	return state
}
