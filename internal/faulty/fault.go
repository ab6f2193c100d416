// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Period is the time between two moments at which a fault's telemetry is written.
const Period = 250 * time.Millisecond

// Fault is a kind of fault.
type Fault struct {
	// Name is the kind in words. Kind, Class and Op are of the finding that a gateway opens.
	Name            string
	Kind, Class, Op string

	write func(m *Moment)
}

// Faults returns one of every kind.
func Faults() []Fault {
	return []Fault{
		{Name: "straggler", Kind: model.FindingStraggler, Class: model.ClassCompute, write: straggling},
		{Name: "hang", Kind: model.FindingDesync, Class: model.ClassNotScheduled, write: hanging},
		{Name: "clock", Kind: model.FindingClock, Class: model.ClassSkew, write: skewed},
		{Name: "checkpoint", Kind: model.FindingEpoch, Class: model.ClassMixed, Op: "save 20", write: saving},
		{Name: "resume", Kind: model.FindingEpoch, Class: model.ClassMixed, Op: model.OpResume, write: resuming},
		{Name: "replica", Kind: model.FindingEpoch, Class: model.ClassMixed, Op: model.OpFingerprint, write: hashing},
		{Name: "fleet", Kind: model.FindingEpoch, Class: model.ClassFleetMixed, Op: string(model.VersionKernelDriver), write: mixing},
		{Name: "log line", Kind: model.FindingEpoch, Class: model.ClassMixed, Op: model.OpLogLine + "deepspeed_tag", write: logging},
	}
}

// Moment is what has been written of a fault at one moment.
type Moment struct {
	Traces ptrace.Traces
	Logs   plog.Logs

	job string
	n   int64 // of the moment, from 0
	at  time.Time
	// from is the moment from which on the fault is removed; -1: it stays.
	from int64
}

// Write returns the telemetry of the fault in a job, or in a group of clocks, of its n-th moment, n periods after
// begin. From the moment removed on the fault is no longer there; -1: it stays.
func (f *Fault) Write(job string, begin time.Time, n, removed int64) Moment {
	m := Moment{Traces: ptrace.NewTraces(), Logs: plog.NewLogs(), job: job, n: n, at: begin.Add(time.Duration(n) * Period), from: removed}
	f.write(&m)
	return m
}

// right reports whether the fault is removed.
func (m *Moment) right() bool { return m.from >= 0 && m.n >= m.from }

// each reports whether this is a moment of those that are so many periods apart.
func (m *Moment) each(periods int64) bool { return m.n%periods == 0 }

// before returns the Unix ns that are d before the moment.
func (m *Moment) before(d time.Duration) int64 { return m.at.Add(-d).UnixNano() }
