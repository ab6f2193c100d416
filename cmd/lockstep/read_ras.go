// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/ras"
	"github.com/lockstep-otel/lockstep/internal/rasset"
)

// rasReader reads answers of NCCL's RAS that were saved, as ncclras prints them.
type rasReader struct {
	job  string
	hung bool // the person knows that the job hung
}

func (rasReader) format() sniff.Format { return sniff.RAS }

// maxRASBytes bounds one file: an answer of 1,024 ranks takes 8 MB.
const maxRASBytes = 256 << 20

func (r rasReader) read(ctx context.Context, files []input, to *analysis) {
	var answers []rasset.Answer
	for _, f := range files {
		if ctx.Err() != nil {
			return
		}
		all, err := readAnswers(f, to)
		if err != nil {
			to.problems.add(f.path, -1, bare(err))
		}
		if len(all) == 0 {
			continue
		}
		to.files++
		to.bytes += f.size
		answers = append(answers, all...)
	}
	if len(answers) == 0 {
		return
	}
	if to.dumps == nil {
		to.dumps = &dumpset.Result{}
	}
	to.dumps.Hangs = append(to.dumps.Hangs, rasset.Judge(answers, rasset.Options{Job: r.job, Hung: r.hung, Engine: desync.NewDefaultConfig()})...)
}

// readAnswers reads one file, in text or JSON: with an error those in front of the fault.
func readAnswers(f input, to *analysis) ([]rasset.Answer, error) {
	content, closer, err := sniff.Open(f.path, to.progress.reader)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closer.Close() }() // it was only read
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	list, err := ras.ParseAnswers(content, maxRASBytes)
	var out []rasset.Answer
	for _, s := range list {
		out = append(out, rasset.Answer{Path: f.path, Written: info.ModTime().UnixNano(), Status: s})
	}
	return out, err
}
