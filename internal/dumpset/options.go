// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"runtime"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Options say how a set is read.
type Options struct {
	// Job names the job of all dumps; empty: their folder does.
	Job string
	// WorldSize is how many ranks the job has; 0: what the dumps say.
	WorldSize int64
	// Hung says that the job hung when its dumps were written.
	Hung bool
	// RankOf tells the rank that a file's name speaks of, and what precedes it;
	// nil: flightrecorder.RankOf.
	RankOf func(path string) (rank int64, prefix string, ok bool)
	// Workers is how many dumps are read at a time; 0: one per core.
	Workers int
	Engine  desync.Config
	// Dead are ranks that ended, as something else tells. It counts of ranks that have no dump.
	Dead   []model.Absence
	Limits flightrecorder.Limits
	// Progress is told how many bytes were read since the last call. It may be nil.
	Progress func(bytes int64)
}

func (o Options) withDefaults() Options {
	if o.RankOf == nil {
		o.RankOf = flightrecorder.RankOf
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	return o
}

// Result is what came of a set.
type Result struct {
	// Hangs are the reports, one for each incident of a job, the worst first.
	Hangs []Hang
	// Problems are of files, at most 10,000; ProblemsOmitted counts the others.
	Problems        []model.Problem
	ProblemsOmitted int64
	Stats           Stats
}

// Hang is the report on one incident of a job.
type Hang struct {
	*desync.Report
	// Incidents is of how many incidents there are dumps of the job. Where they are several,
	// Began is the newest operation of the first dump of this one, Unix ns.
	Incidents int
	Began     int64
	// Times says where nothing tells whether its dumps were written together, in a sentence.
	Times string
	// Remarks are what is known beside the report, in sentences.
	Remarks []string
	// Answers is how many answers of NCCL's RAS it speaks of, in the place of dumps.
	Answers int
	// SizeRefused: a size of the job was given that its dumps contradict.
	SizeRefused bool
	// Logs: it is of logs of ranks, not of dumps.
	Logs bool
	// Unplaced are the logs with time-outs of ranks that nothing tells.
	Unplaced int
	// Files are of how many dumps it speaks; Entries is how many operations they recorded.
	Files   int
	Entries int64
	// Versions are those of the dumps, Libs those of their communication libraries.
	Versions, Libs []string
	// OnlyActive: dumps from which what was over had been left out. Partial: cut or damaged.
	OnlyActive, Partial int
}

// Stats count what was read and what was not taken.
type Stats struct {
	Files, Unreadable, Refused, Partial, Copies int
	// Repeated counts dumps of which there are copies under the names of other ranks.
	Repeated       int
	Bytes, Entries int64
}
