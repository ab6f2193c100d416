// SPDX-License-Identifier: Apache-2.0

package offsets

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Marks are kept beside a floor. They name the first step of each job that is read again. A record may have
// operations of earlier steps, too, which are concluded: they are not given again, since the rest of these steps
// is not read again.
type Marks struct {
	// By names the process that wrote them.
	By string
	// Next is the offset of the first record that was not read yet. Marks say nothing about later ones: a job that
	// goes back to an earlier step is new there.
	Next int64
	// First is the first step of each job.
	First map[Job]int64
}

// Marks returns those of the steps that are kept, by a process.
func (t *Tracker) Marks(by string) Marks {
	m := Marks{By: by, Next: t.next, First: map[Job]int64{}}
	for key, j := range t.jobs {
		first := int64(math.MaxInt64)
		if len(j.steps) == 0 {
			continue
		}
		for s := range j.steps {
			first = min(first, s)
		}
		m.First[key] = first
	}
	return m
}

// Concluded reports whether a step, of which a record at an offset has something, was concluded before.
func (m *Marks) Concluded(s Step, offset int64) bool {
	first, known := m.First[s.Job]
	return known && s.Step < first && offset < m.Next
}

// MaxMarksBytes is the most that Kafka keeps beside an offset by default (offset.metadata.max.bytes).
const MaxMarksBytes = 4096

// markVersion is that of the text.
const markVersion = 1

type marksText struct {
	Version int        `json:"v"`
	By      string     `json:"by"`
	Next    int64      `json:"next"`
	First   []markText `json:"first"`
}

type markText struct {
	ID          string `json:"id"`
	Incarnation string `json:"inc,omitempty"`
	Step        int64  `json:"step"`
}

// Text returns the marks as JSON of at most [MaxMarksBytes], and how many jobs found no room. The name of the
// process is short.
func (m *Marks) Text() (text string, left int) {
	out := marksText{Version: markVersion, By: m.By, Next: m.Next}
	for _, j := range slices.SortedFunc(maps.Keys(m.First), compareJobs) {
		out.First = append(out.First, markText{j.ID, j.Incarnation, m.First[j]})
	}
	for n := len(out.First); ; n-- {
		some := out
		some.First = out.First[:n]
		b, err := json.Marshal(some)
		if err == nil && len(b) <= MaxMarksBytes || n == 0 {
			return string(b), len(out.First) - n
		}
	}
}

func compareJobs(a, b Job) int {
	if a.ID != b.ID {
		return slices.Compare([]byte(a.ID), []byte(b.ID))
	}
	return slices.Compare([]byte(a.Incarnation), []byte(b.Incarnation))
}

// ParseMarks reads marks; an empty text has none.
func ParseMarks(text string) (Marks, error) {
	if text == "" {
		return Marks{}, nil
	}
	if len(text) > MaxMarksBytes {
		return Marks{}, fmt.Errorf("read marks beside an offset: got %d bytes; want at most %d", len(text), MaxMarksBytes)
	}
	var in marksText
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return Marks{}, fmt.Errorf("read marks beside an offset: got %.40q; want JSON of job_kafka", text)
	}
	if in.Version != markVersion {
		return Marks{}, fmt.Errorf("read marks beside an offset: got version %d; want %d", in.Version, markVersion)
	}
	m := Marks{By: in.By, Next: in.Next, First: map[Job]int64{}}
	for _, f := range in.First {
		m.First[Job{f.ID, f.Incarnation}] = f.Step
	}
	return m, nil
}
