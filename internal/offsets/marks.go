// SPDX-License-Identifier: Apache-2.0

package offsets

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Marks are the first step of each job that is read again from a floor on. A record at the floor may have
// operations of earlier steps, too, which are concluded: they are not given again, since the rest of these steps
// is not read again.
type Marks map[Job]int64

// Marks returns those of the steps that are kept.
func (t *Tracker) Marks() Marks {
	m := Marks{}
	for key, j := range t.jobs {
		first := int64(math.MaxInt64)
		if len(j.steps) == 0 {
			continue
		}
		for s := range j.steps {
			first = min(first, s)
		}
		m[key] = first
	}
	return m
}

// Concluded reports whether a step was concluded before the floor.
func (m Marks) Concluded(s Step) bool {
	first, known := m[s.Job]
	return known && s.Step < first
}

// MaxMarksBytes is the most that Kafka keeps beside an offset by default (offset.metadata.max.bytes).
const MaxMarksBytes = 4096

// markVersion is that of the text.
const markVersion = 1

type marksText struct {
	Version int        `json:"v"`
	By      string     `json:"by"`
	First   []markText `json:"first"`
}

type markText struct {
	ID          string `json:"id"`
	Incarnation string `json:"inc,omitempty"`
	Step        int64  `json:"step"`
}

// Text returns the marks of a process as JSON of at most [MaxMarksBytes], and how many jobs found no room. The
// name of the process is short.
func (m Marks) Text(by string) (text string, left int) {
	out := marksText{Version: markVersion, By: by}
	for _, j := range slices.SortedFunc(maps.Keys(m), compareJobs) {
		out.First = append(out.First, markText{j.ID, j.Incarnation, m[j]})
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

// ParseMarks reads marks, and the name of the process that wrote them; an empty text has none.
func ParseMarks(text string) (m Marks, by string, err error) {
	if text == "" {
		return nil, "", nil
	}
	if len(text) > MaxMarksBytes {
		return nil, "", fmt.Errorf("read marks beside an offset: got %d bytes; want at most %d", len(text), MaxMarksBytes)
	}
	var in marksText
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, "", fmt.Errorf("read marks beside an offset: got %.40q; want JSON of job_kafka", text)
	}
	if in.Version != markVersion {
		return nil, "", fmt.Errorf("read marks beside an offset: got version %d; want %d", in.Version, markVersion)
	}
	m = Marks{}
	for _, f := range in.First {
		m[Job{f.ID, f.Incarnation}] = f.Step
	}
	return m, in.By, nil
}
