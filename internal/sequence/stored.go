// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Keys of what a [Ledger] stores. A stream is under its name behind streamKey, a job under its names behind jobPrefix.
const (
	stateKey  = "state"
	listKey   = "list"
	streamKey = "stream/"
	jobPrefix = "job/"
)

// key returns the key of a job. The length is that of the first name: names may contain the separator.
func (k jobKey) key() string {
	return jobPrefix + strconv.Itoa(len(k.id)) + "/" + k.id + "/" + k.incarnation
}

// storedVersion is that of all values.
const storedVersion = 1

type storedList struct {
	Version int         `json:"v"`
	Streams []string    `json:"streams"`
	Jobs    []storedKey `json:"jobs,omitempty"`
}

type storedState struct {
	Version  int          `json:"v"`
	Totals   Totals       `json:"totals"`
	Underway []storedStep `json:"underway,omitempty"`
	Losses   []storedLoss `json:"losses,omitempty"`
}

type storedKey struct {
	Job         string `json:"job"`
	Incarnation string `json:"incarnation"`
}

type storedJob struct {
	Version int             `json:"v"`
	Used    int64           `json:"used"` // Unix seconds
	Done    Ranges          `json:"done,omitempty"`
	Unsure  Ranges          `json:"unsure,omitempty"`
	Lost    map[int64]int64 `json:"lost,omitempty"`
}

// storedLoss is a loss that nothing has asked for.
type storedLoss struct {
	storedStep
	Last   int64  `json:"last"`
	Spans  int64  `json:"spans"`
	Reason string `json:"reason"`
}

type storedStep struct {
	Job         string `json:"job"`
	Incarnation string `json:"incarnation"`
	Step        int64  `json:"step"`
	Numbers     Ranges `json:"numbers,omitempty"`
}

type storedStream struct {
	Version int          `json:"v"`
	Seen    Ranges       `json:"seen"`
	Open    []storedStep `json:"open,omitempty"`
}

// MarshalJSON returns the range as a list of its first and its last number.
func (r Range) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d]", r.First, r.Last), nil
}

// UnmarshalJSON reads what MarshalJSON returns.
func (r *Range) UnmarshalJSON(data []byte) error {
	var both []int64
	if err := json.Unmarshal(data, &both); err != nil {
		return err //nolint:wrapcheck // the caller says of what
	}
	if len(both) != 2 {
		return fmt.Errorf("got %d numbers; want the first and the last", len(both))
	}
	r.First, r.Last = both[0], both[1]
	return nil
}

// commit stores what has changed. After a failure it is stored with the next change.
func (l *Ledger) commit() error {
	if l.store == nil {
		clear(l.dirty)
		clear(l.changed)
		return nil
	}
	var changes []Change
	for name := range l.dirty {
		c := Change{Key: streamKey + name}
		if s, ok := l.streams.Peek(name); ok {
			c.Value = encode(s.stored())
		}
		changes = append(changes, c)
	}
	for of := range l.changed {
		c := Change{Key: of.key()}
		if j, ok := l.jobs.Peek(of); ok {
			c.Value = encode(&storedJob{storedVersion, j.used.Unix(), j.done, j.unsure, j.lost})
		}
		changes = append(changes, c)
	}
	if !l.listed {
		changes = append(changes, Change{listKey, encode(l.list())})
	}
	state := encode(l.state())
	if len(changes) == 0 && bytes.Equal(state, l.stored) {
		return nil
	}
	if err := l.store.Apply(append(changes, Change{stateKey, state})); err != nil {
		return fmt.Errorf("store which spans arrived: %w", err)
	}
	l.listed, l.stored = true, state
	for name := range l.dirty {
		if s, ok := l.streams.Peek(name); ok {
			s.kept = true
		}
	}
	for of := range l.changed {
		if j, ok := l.jobs.Peek(of); ok {
			j.kept = true
		}
	}
	clear(l.dirty)
	clear(l.changed)
	return nil
}

// encode returns a value, which has nothing that JSON does not.
func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func (s *stream) stored() *storedStream {
	out := &storedStream{Version: storedVersion, Seen: s.seen}
	for step, p := range s.parts {
		out.Open = append(out.Open, storedStep{step.Job, step.Incarnation, step.Step, p.all()})
	}
	return out
}

func (l *Ledger) list() *storedList {
	out := &storedList{Version: storedVersion, Streams: slices.Collect(l.streams.Keys())}
	for of := range l.jobs.Keys() {
		out.Jobs = append(out.Jobs, storedKey{of.id, of.incarnation})
	}
	return out
}

func (l *Ledger) state() *storedState {
	out := &storedState{Version: storedVersion, Totals: l.totals}
	for step := range l.underway {
		out.Underway = append(out.Underway, storedStep{Job: step.Job, Incarnation: step.Incarnation, Step: step.Step})
	}
	for _, of := range l.losses.runs() {
		out.Losses = append(out.Losses, storedLoss{
			storedStep{Job: of.Job, Incarnation: of.Incarnation, Step: of.Step.Step}, of.Last, of.Spans, of.Reason,
		})
	}
	return out
}

// load reads what the life before has stored, and returns the names of it that it could read. What was open then is in
// doubt.
func (l *Ledger) load(now time.Time) (list storedList, err error) {
	err = l.loadValue(listKey, func(data []byte) error { return decode(data, &list, &list.Version) })
	if err != nil {
		return storedList{}, err
	}
	if err := l.loadValue(stateKey, l.loadState); err != nil {
		return list, err
	}
	for _, of := range list.Jobs {
		key := jobKey{of.Job, of.Incarnation}
		if err := l.loadValue(key.key(), func(data []byte) error { return l.loadJob(key, data) }); err != nil {
			return list, err
		}
	}
	l.forgetJobs(now.Add(-l.cfg.StreamLimit))
	for _, name := range list.Streams {
		if err := l.loadValue(streamKey+name, func(data []byte) error { return l.loadStream(name, data, now) }); err != nil {
			return list, err
		}
	}
	l.endUnderway()
	return list, nil
}

// discard has the keys deleted of what the life before knew.
func (l *Ledger) discard(old storedList) {
	for _, name := range old.Streams {
		l.dirty[name] = true
	}
	for _, of := range old.Jobs {
		l.changed[jobKey{of.Job, of.Incarnation}] = true
	}
}

// loadValue has a value read, if there is one.
func (l *Ledger) loadValue(key string, read func([]byte) error) error {
	data, err := l.store.Load(key)
	if err != nil || data == nil {
		return err //nolint:wrapcheck // says what it is
	}
	if err := read(data); err != nil {
		return fmt.Errorf("read %q: %w", key, err)
	}
	return nil
}

// decode reads a value of a version.
func decode(data []byte, into any, version *int) error {
	if err := json.Unmarshal(data, into); err != nil {
		return errors.New("got a damaged value; want JSON as docs/format/sequence.md has it")
	}
	if *version != storedVersion {
		return fmt.Errorf("got version %d; want %d", *version, storedVersion)
	}
	return nil
}

func (l *Ledger) loadState(data []byte) error {
	var state storedState
	if err := decode(data, &state, &state.Version); err != nil {
		return err
	}
	l.totals = state.Totals
	for i := range state.Underway {
		step := state.Underway[i].of()
		if !step.Valid() {
			return fmt.Errorf("steps that were underway: got step %d; want at most %d", step.Step, int64(MaxStep))
		}
		l.underway[step] = l.now
	}
	for i := range state.Losses[:min(len(state.Losses), l.cfg.MaxJobs)] {
		of := &state.Losses[i]
		l.losses = append(l.losses, Loss{Step: of.of(), Last: of.Last, Spans: of.Spans, Reason: of.Reason})
	}
	return nil
}

func (s *storedStep) of() Step { return Step{s.Job, s.Incarnation, s.Step} }

func (l *Ledger) loadJob(of jobKey, data []byte) error {
	var stored storedJob
	if err := decode(data, &stored, &stored.Version); err != nil {
		return err
	}
	for _, steps := range []Ranges{stored.Done, stored.Unsure} {
		if err := steps.check(-MaxStep, MaxStep); err != nil {
			return fmt.Errorf("steps: %w", err)
		}
	}
	j := &job{done: stored.Done, unsure: stored.Unsure, lost: map[int64]int64{}, used: time.Unix(stored.Used, 0), kept: true}
	if j.used.After(l.now) { // the clock was set back
		j.used = l.now
	}
	maps.Copy(j.lost, stored.Lost)
	l.jobs.Set(of, j)
	return nil
}

func (l *Ledger) loadStream(name string, data []byte, now time.Time) error {
	var of storedStream
	if err := decode(data, &of, &of.Version); err != nil {
		return err
	}
	if err := of.Seen.check(0, MaxNumber); err != nil {
		return fmt.Errorf("numbers: %w", err)
	}
	if l.streams.Has(name) {
		return nil // it is listed twice
	}
	s := &stream{name: name, seen: of.Seen, parts: map[Step]*part{}, used: now, since: now, kept: true}
	var known Ranges
	for _, open := range of.Open {
		if err := open.Numbers.check(0, MaxNumber); err != nil {
			return fmt.Errorf("numbers of step %d: %w", open.Step, err)
		}
		numbers := open.Numbers.Minus(known)
		if len(numbers) == 0 {
			continue
		}
		step := open.of()
		known, s.seen = known.Union(numbers), s.seen.Union(numbers)
		if !step.Valid() || s.parts[step] != nil || l.open >= l.cfg.MaxOpen {
			l.totals.Forgotten += numbers.Count()
			l.dirty[name] = true
			continue
		}
		s.job = step.job()
		l.enter(s, step, now).doubt = numbers
	}
	s.spread = s.openRanges()
	l.streams.Set(name, s)
	return nil
}

// endUnderway decides steps whose conclusion was under way: nothing says whether it was sent.
func (l *Ledger) endUnderway() {
	for step := range l.underway {
		l.settle(step, !l.concluded(step))
		if n := l.close(step); n > 0 {
			l.totals.Uncertain += n
			l.report(step, n, ReasonUncertain)
		}
		delete(l.underway, step)
	}
}
