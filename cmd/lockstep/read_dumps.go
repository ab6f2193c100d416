// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
)

// dumpReader reads Flight Recorder dumps. What hangs is told apart from what the engine of
// stragglers finds.
type dumpReader struct {
	job   string
	world int64          // 0: what the dumps say
	hung  bool           // when the dumps were written
	rank  *regexp.Regexp // nil: by the usual names
}

func (dumpReader) format() sniff.Format { return sniff.FlightRecorder }

func (r dumpReader) read(ctx context.Context, files []input, to *analysis) {
	o := dumpset.Options{Job: r.job, WorldSize: r.world, Hung: r.hung, Engine: desync.NewDefaultConfig(), Progress: to.progress.advance}
	if r.rank != nil {
		o.RankOf = r.rankOf
	}
	o.Dead = to.deadByLogs()
	to.dumps = dumpset.Read(ctx, pathsOf(files), o)
	to.files += to.dumps.Stats.Files - to.dumps.Stats.Unreadable
	to.bytes += to.dumps.Stats.Bytes
	to.ops += to.dumps.Stats.Entries
}

// rankOf finds the rank by --rank-pattern.
func (r dumpReader) rankOf(path string) (rank int64, prefix string, ok bool) {
	name := filepath.Base(path)
	at := r.rank.FindStringSubmatchIndex(name)
	if len(at) < 4 || at[2] < 0 {
		return 0, "", false
	}
	rank, err := strconv.ParseInt(name[at[2]:at[3]], 10, 64)
	return rank, name[:at[2]], err == nil
}
