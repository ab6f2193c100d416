// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// runs are reports of runs on GPUs, oldest first.
type runs []*report.Report

// read reads a file that has a report a line.
func read(path string) (runs, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	var all runs
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r, err := decode(line)
		if err != nil {
			return nil, fmt.Errorf("read %s: line %d: %w", path, i+1, err)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b *report.Report) int { return a.Began.Compare(b.Began) })
	return all, nil
}

var errNoGPU = errors.New("got a run without a GPU; want one on a GPU, since a stand-in shows nothing of it")

func decode(text []byte) (*report.Report, error) {
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("decode report: %w", err)
	}
	if r.Format != report.Format {
		return nil, fmt.Errorf("decode report: got format %d; want %d", r.Format, report.Format)
	}
	if err := plain(&r); err != nil {
		return nil, err
	}
	if !gpus.MatchString(r.Fact("gpu")) {
		return nil, fmt.Errorf("%w: its GPU is %q", errNoGPU, r.Fact("gpu"))
	}
	if strings.ContainsAny(r.Fact("gpu"), "|<") {
		return nil, fmt.Errorf("decode report: got the GPU %q; want a name without | and <, which end a claim", r.Fact("gpu"))
	}
	if strings.HasSuffix(r.Kit, ".modified") {
		return nil, fmt.Errorf("decode report: got one of kit %q; want a kit of a commit, which others can make", r.Kit)
	}
	return &r, nil
}

// plain returns an error where a report has what gpu-check does not write: it is copied
// into documents.
func plain(r *report.Report) error {
	if r.Began.IsZero() {
		return fmt.Errorf("decode report: got no time at which it began; want one")
	}
	texts := slices.Concat([]string{r.Kit}, r.NotRun, r.LeftOut)
	for _, f := range r.Machine {
		texts = append(texts, f.Name, f.Value)
	}
	for i, p := range r.Parts {
		if p == nil {
			return fmt.Errorf("decode report: got nothing as part %d; want a part", i+1)
		}
		texts = append(texts, p.Name, p.Title)
		for _, c := range p.Checks {
			if !slices.Contains(report.Statuses, c.Status) {
				return fmt.Errorf("decode report: got status %q; want one of %v", c.Status, report.Statuses)
			}
			texts = append(texts, c.Name, c.Text)
			for _, f := range c.Figures {
				texts = append(texts, f.Name, f.Unit)
			}
		}
	}
	for _, t := range texts {
		if strings.ContainsFunc(t, unicode.IsControl) || strings.Contains(t, "<!--") || strings.Contains(t, "-->") {
			return fmt.Errorf("decode report: got the text %.80q; want one line without marks of a comment", t)
		}
	}
	return nil
}

// gpus is the fact of a run on GPUs: how many, and their name.
var gpus = regexp.MustCompile(`^[1-9][0-9]* x .+`)

// add appends a report to the file, as one line.
func add(path, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("add run: %w", err)
	}
	r, err := decode(text)
	if err != nil {
		return fmt.Errorf("add %s: %w", from, err)
	}
	known, err := read(path)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(known, func(k *report.Report) bool { return k.Began.Equal(r.Began) }) {
		return fmt.Errorf("add %s: got a run that is there already; want another", from)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return fmt.Errorf("add %s: %w", from, err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("add run: %w", err)
	}
	_, err = f.Write(append(line.Bytes(), '\n'))
	return errors.Join(err, f.Close())
}

// device returns the GPU of a run without its number: "NVIDIA H200".
func device(r *report.Report) string {
	_, name, found := strings.Cut(r.Fact("gpu"), " x ")
	if !found {
		return r.Fact("gpu")
	}
	return name
}
