// SPDX-License-Identifier: Apache-2.0

// Package report holds what a run of the GPU kit found, and writes it for people
// (Markdown) and for programs (JSON). docs/format/gpu-report.md describes the JSON.
package report

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Format is the version of the JSON. A field may be added without another version.
const Format = 1

// Status is the result of a check.
type Status string

// The statuses of a check.
const (
	// Shown: seen on a GPU, and right.
	Shown Status = "shown"
	// StandIn: right on the stand-in; a GPU has yet to show it.
	StandIn Status = "stand_in"
	// NotShown: this machine cannot show it, or the run had no time left for it; the text
	// names the reason.
	NotShown Status = "not_shown"
	// Noted: measured or seen, and nothing to be judged by.
	Noted Status = "noted"
	// Failed: wrong or broken, or a program did not end in time.
	Failed Status = "failed"
)

// Statuses in the order in which tables list them.
var Statuses = []Status{Shown, StandIn, Noted, NotShown, Failed}

// Figure is one measured number.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // "%", "ms", "1" for counts and ratios
}

// Check is one statement that a part tested.
type Check struct {
	Name    string   `json:"name"` // stable, words joined by hyphens
	Status  Status   `json:"status"`
	Text    string   `json:"text"` // one line: what was seen, or why not
	Figures []Figure `json:"figures,omitempty"`
}

// Part is what one part of the kit found. Its methods may be called from several
// goroutines. Use NewPart.
type Part struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	LimitS float64 `json:"limit_s"`
	TookS  float64 `json:"took_s"`
	Checks []Check `json:"checks"`

	mu     sync.Mutex
	closed bool
}

// NewPart returns a part without checks.
func NewPart(name, title string, limit time.Duration) *Part {
	return &Part{Name: name, Title: title, LimitS: limit.Seconds(), Checks: []Check{}}
}

// Add adds a check. The text is cut to one line of maxText bytes; a figure that is
// no number is left out, since JSON has none. After Close it does nothing.
func (p *Part) Add(name string, status Status, text string, figures ...Figure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	figures = slices.DeleteFunc(slices.Clone(figures), func(f Figure) bool { return !finite(f.Value) })
	p.Checks = append(p.Checks, Check{Name: name, Status: status, Text: oneLine(text), Figures: figures})
}

// Addf is Add with a format and no figures.
func (p *Part) Addf(name string, status Status, format string, args ...any) {
	p.Add(name, status, fmt.Sprintf(format, args...))
}

// Close notes how long the part took. Checks that come later, from a goroutine that
// outlived its time limit, are dropped.
func (p *Part) Close(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.TookS = took.Seconds()
}

// Fact is one thing known of the machine, such as "driver": "580.159.04".
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// maxFact bounds the value of a fact, bytes.
const maxFact = 300

// NewFact returns a fact of one line.
func NewFact(name, value string) Fact { return Fact{Name: name, Value: cut(oneLine(value), maxFact)} }

// Report is one run of the kit.
type Report struct {
	Format  int       `json:"format"`
	Kit     string    `json:"kit"` // version and commit
	Began   time.Time `json:"began"`
	TookS   float64   `json:"took_s"`
	Machine []Fact    `json:"machine"`
	Parts   []*Part   `json:"parts"`
	// Files are the fixtures, names within the output folder.
	Files []string `json:"files"`
	// NotRun are parts that the run did not come to, LeftOut those that were not asked for.
	NotRun  []string `json:"not_run,omitempty"`
	LeftOut []string `json:"left_out,omitempty"`
}

// Fact returns a fact of the machine; empty where it is unknown.
func (r *Report) Fact(name string) string {
	for _, f := range r.Machine {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Count returns how many checks of all parts have the status.
func (r *Report) Count(s Status) int {
	n := 0
	for _, p := range r.Parts {
		for _, c := range p.Checks {
			if c.Status == s {
				n++
			}
		}
	}
	return n
}
