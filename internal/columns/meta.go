// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Version is the version of the format that is written. A reader takes files up to its own version.
const Version = 1

// Resolution is the unit of times in a file, ns.
type Resolution int64

// The resolutions.
const (
	Exact           Resolution = 1
	HundredNanosecs Resolution = 100
)

func (r Resolution) known() bool { return r == Exact || r == HundredNanosecs }

// MaxError returns by how much a time may differ from what was written, ns.
func (r Resolution) MaxError() int64 { return int64(r) / 2 }

// Keys of the metadata of a file.
const (
	keyVersion     = "lockstep_schema_version"
	keyJob         = "lockstep_job_id"
	keyIncarnation = "lockstep_job_incarnation"
	keyFirstStep   = "lockstep_step_first"
	keyLastStep    = "lockstep_step_last"
	keyRanks       = "lockstep_ranks"
	keyRanksCount  = "lockstep_ranks_count"
	keyResolution  = "lockstep_time_resolution_ns"
	keyMaxError    = "lockstep_time_max_error_ns"
	keyProducer    = "lockstep_producer_version"
	keySequence    = "lockstep_file_sequence"
)

// Meta is what the metadata of a file has, besides the version.
type Meta struct {
	Job, Incarnation string
	// FirstStep and LastStep are of the operations that have a step; unknown where none has. A writer finds
	// them itself, as it does RanksCount.
	FirstStep, LastStep model.Optional[int64]
	// RanksCount is how many ranks have operations in the file.
	RanksCount int64
	Resolution Resolution
	Producer   string // version of the program that wrote the file
	Sequence   int64  // orders the files of one writer
}

// maxRankSpans bounds the spans of ranks that are listed.
const maxRankSpans = 1024

func ranksText(ranks []int64) string {
	spans, listed := model.Spans(ranks, maxRankSpans)
	text := strings.Join(spans, ",")
	if listed < len(ranks) {
		text += ",..."
	}
	return text
}

// parseMeta reads the metadata of a file of a known version.
func parseMeta(pairs map[string]string) (m Meta, err error) {
	m = Meta{Job: pairs[keyJob], Incarnation: pairs[keyIncarnation], Producer: pairs[keyProducer]}
	for _, f := range []struct {
		key string
		to  func(int64)
	}{
		{keyFirstStep, func(n int64) { m.FirstStep = model.Some(n) }},
		{keyLastStep, func(n int64) { m.LastStep = model.Some(n) }},
		{keyRanksCount, func(n int64) { m.RanksCount = n }},
		{keySequence, func(n int64) { m.Sequence = n }},
		{keyResolution, func(n int64) { m.Resolution = Resolution(n) }},
	} {
		text, ok := pairs[f.key]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return m, fmt.Errorf("read metadata: got %s %q; want a number", f.key, shorten(text))
		}
		f.to(n)
	}
	if !m.Resolution.known() {
		return m, fmt.Errorf("read metadata: got %s %q; want %d or %d", keyResolution, shorten(pairs[keyResolution]), Exact, HundredNanosecs)
	}
	return m, nil
}

// maxShown bounds what an error shows of a text, bytes.
const maxShown = 64

func shorten(s string) string {
	if len(s) > maxShown {
		return s[:maxShown] + "..."
	}
	return s
}

// pairs returns the metadata of the file.
func (w *Writer) pairs() [][2]string {
	m := &w.meta
	ranks := make([]int64, 0, len(w.ranks))
	for r := range w.ranks {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	pairs := [][2]string{
		{keyVersion, number(Version)},
		{keyJob, m.Job},
		{keyIncarnation, m.Incarnation},
		{keyRanks, ranksText(ranks)},
		{keyRanksCount, number(int64(len(ranks)))},
		{keyResolution, number(int64(m.Resolution))},
		{keyMaxError, number(m.Resolution.MaxError())},
		{keyProducer, m.Producer},
		{keySequence, number(m.Sequence)},
	}
	if m.FirstStep.OK {
		pairs = append(pairs, [2]string{keyFirstStep, number(m.FirstStep.V)}, [2]string{keyLastStep, number(m.LastStep.V)})
	}
	return pairs
}
