// SPDX-License-Identifier: Apache-2.0

package offsets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Marks are kept beside a floor. They name the steps that are read again, of which all records are there. A record
// may have operations of other steps, too, which are concluded: they are not given again, since the rest of these
// steps is not read again.
type Marks struct {
	// By names the process that wrote them.
	By string
	// Next is the offset of the first record that was not read yet. Marks say nothing about later ones.
	Next int64
	// held has the steps of each job that are held, by the hash of the job.
	held map[string]spans
	// some: a job of which steps are held, or were until it was dropped, has no room, so that a job which is not there
	// may be it.
	some bool
}

// span is steps from first to last.
type span struct{ first, last int64 }

// spans are in order.
type spans []span

// Marks returns those of the steps that are held, by a process.
func (t *Tracker) Marks(by string) Marks {
	if t.again() {
		m := t.found
		m.By = by
		return m
	}
	steps := map[string][]int64{}
	for key, j := range t.jobs {
		if len(j.steps) > 0 {
			steps[key.hash()] = slices.AppendSeq(steps[key.hash()], maps.Keys(j.steps))
		}
	}
	// A job that was dropped may have open steps behind the floor.
	m := Marks{By: by, Next: t.next, held: map[string]spans{}, some: t.floor < t.crowded}
	for job, all := range steps {
		slices.Sort(all)
		m.held[job] = spansOf(slices.Compact(all))
	}
	return m
}

func spansOf(steps []int64) (out spans) {
	for _, s := range steps {
		if n := len(out); n > 0 && out[n-1].last+1 == s {
			out[n-1].last = s
			continue
		}
		out = append(out, span{s, s})
	}
	return out
}

func (s spans) has(step int64) bool {
	return slices.ContainsFunc(s, func(x span) bool { return x.first <= step && step <= x.last })
}

// hash names a job in marks: ids are long.
func (j Job) hash() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(j.ID + "\x00" + j.Incarnation))
	return strconv.FormatUint(h.Sum64(), 36)
}

// Concluded reports whether a step, of which a record at an offset has something, was concluded before.
func (m *Marks) Concluded(s Step, offset int64) bool {
	if offset >= m.Next {
		return false
	}
	held, known := m.held[s.hash()]
	if !known {
		return !m.some
	}
	return !held.has(s.Step)
}

// MaxMarksBytes is the most that Kafka keeps beside an offset by default (offset.metadata.max.bytes).
const MaxMarksBytes = 4096

// maxSpans is how many spans one job has in a text: those between are taken as held, too.
const maxSpans = 16

// markVersion is that of the text.
const markVersion = 1

type marksText struct {
	Version int               `json:"v"`
	By      string            `json:"by"`
	Next    int64             `json:"next"`
	Held    map[string]string `json:"held"`
	Some    bool              `json:"some,omitempty"`
}

// Text returns the marks as JSON of at most [MaxMarksBytes], and how many jobs found no room. The name of the
// process is short.
func (m *Marks) Text() (text string, left int) {
	out := marksText{Version: markVersion, By: m.By, Next: m.Next, Held: map[string]string{}, Some: m.some}
	const frame, entry = 120, 6 // of the text, and of one job's part: quotes, colon, comma
	size := frame + len(m.By)
	texts := map[string]string{}
	for job, steps := range m.held {
		texts[job] = steps.text()
	}
	shortFirst := func(a, b string) int { return cmp.Or(len(texts[a])-len(texts[b]), strings.Compare(a, b)) }
	for _, job := range slices.SortedFunc(maps.Keys(m.held), shortFirst) { // so that most have room
		steps := texts[job]
		need := len(job) + len(steps) + entry
		if size+need > MaxMarksBytes {
			left++
			out.Some = true
			continue
		}
		size += need
		out.Held[job] = steps
	}
	b, err := json.Marshal(out)
	if err != nil { // texts and numbers always can
		return "", len(m.held)
	}
	return string(b), left
}

// text returns spans as people list them: "408-487,490". Of more than maxSpans the last is long.
func (s spans) text() string {
	if len(s) > maxSpans {
		s = append(s[:maxSpans-1:maxSpans-1], span{s[maxSpans-1].first, s[len(s)-1].last})
	}
	parts := make([]string, len(s))
	for i, x := range s {
		parts[i] = strconv.FormatInt(x.first, 10)
		if x.last != x.first {
			parts[i] += ".." + strconv.FormatInt(x.last, 10)
		}
	}
	return strings.Join(parts, ",")
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
	m := Marks{By: in.By, Next: in.Next, held: map[string]spans{}, some: in.Some}
	for job, steps := range in.Held {
		s, err := parseSpans(steps)
		if err != nil {
			return Marks{}, fmt.Errorf("read marks beside an offset: %w", err)
		}
		m.held[job] = s
	}
	return m, nil
}

func parseSpans(text string) (out spans, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "..")
		if !ranged {
			last = first
		}
		var s span
		if s.first, err = strconv.ParseInt(first, 10, 64); err == nil {
			s.last, err = strconv.ParseInt(last, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("got steps %.40q; want numbers such as 408..487,490", text)
		}
		out = append(out, s)
	}
	return out, nil
}
