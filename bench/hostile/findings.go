// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// jobPrefix begins the names of jobs that behave.
const jobPrefix = "neighbour-"

// reader follows a file of findings and keeps those of jobs that behave.
type reader struct {
	path  string
	at    int64
	found map[string][]model.Finding // by job
}

func newReader(path string) *reader { return &reader{path: path, found: map[string][]model.Finding{}} }

// read takes the lines that are whole and frees their room on the disk.
func (r *reader) read() error {
	file, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(r.at, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		r.at += int64(len(line))
		if err := r.take(line); err != nil {
			return err
		}
	}
	free(file, r.at)
	return nil
}

func (r *reader) take(line []byte) error {
	if !bytes.Contains(line, []byte(jobPrefix)) {
		return nil
	}
	ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
	if err != nil {
		return fmt.Errorf("read findings of %s: %w", r.path, err)
	}
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if f, ok := otelmap.LogToFinding(lr, nil); ok && strings.HasPrefix(f.JobID, jobPrefix) {
					r.found[f.JobID] = append(r.found[f.JobID], f)
				}
			}
		}
	}
	return nil
}

// The verdicts on what was found of a job.
const (
	right   = "right"
	missing = "none"
	closed  = "closed"
	wrong   = "wrong"
)

// verdict compares what was found of a job with its fault, which lasts until the end: a finding of it must
// be open. Any finding of another rank or class is wrong.
func (r *reader) verdict(job string, n *neighbour) string {
	last := map[string]*model.Finding{} // by id
	for i := range r.found[job] {
		f := &r.found[job][i]
		if f.Kind != n.kind || f.Class != n.class || f.Rank != model.Some(n.rank) {
			return fmt.Sprintf("%s (%s %s, rank %d)", wrong, f.Kind, f.Class, f.Rank.Or(-1))
		}
		if of := last[f.ID]; of == nil || f.Revision >= of.Revision {
			last[f.ID] = f
		}
	}
	verdict := missing
	for _, f := range last {
		if f.Status != model.StatusClosed {
			return right
		}
		verdict = closed
	}
	return verdict
}
