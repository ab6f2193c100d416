// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Version is that of the messages, which docs/format/commit.md specifies.
const Version = 1

// MaxWait bounds for how long one message may wait for its answer: servers and those between give up
// on one that takes half a minute.
const MaxWait = 10 * time.Second

// Message is one domain's, as JSON.
type Message struct {
	Version  int        `json:"version"`
	Job      string     `json:"job"`
	Domain   string     `json:"domain"`
	Domains  int        `json:"domains"`
	Life     string     `json:"life"`
	Sequence int64      `json:"sequence"`
	Session  string     `json:"session"`
	Slots    []wireSlot `json:"slots"`
	Wait     *wireWait  `json:"wait"`
}

type wireSlot struct {
	Epoch   int64  `json:"epoch"`
	Attempt string `json:"attempt"`
	State   string `json:"state"`
}

type wireWait struct {
	For     string  `json:"for"`
	Epoch   int64   `json:"epoch"`
	Seconds float64 `json:"seconds"`
	Missing bool    `json:"missing"`
}

// waitForSession is what a domain waits for that takes part in no session yet.
const waitForSession = "session"

// ParseMessage reads what a domain tells, what it waits for, and for how long.
func ParseMessage(data []byte) (t Tell, until Until, wait time.Duration, err error) {
	var m Message
	if err := json.Unmarshal(data, &m); err != nil {
		return t, until, 0, fmt.Errorf("parse message: %w", err)
	}
	if m.Version != Version {
		return t, until, 0, fmt.Errorf("parse message: check version: got %d; want %d", m.Version, Version)
	}
	t = Tell{Job: m.Job, Domain: m.Domain, Domains: m.Domains, Life: m.Life, Sequence: m.Sequence, Session: m.Session}
	if len(m.Slots) > MaxSlots {
		return t, until, 0, fmt.Errorf("parse message: check slots: got %d; want at most %d", len(m.Slots), MaxSlots)
	}
	for i, s := range m.Slots {
		state, err := ParseState(s.State)
		if err != nil {
			return t, until, 0, fmt.Errorf("parse message: check slots: %d: %w", i, err)
		}
		t.Slots = append(t.Slots, Slot{Attempt{s.Epoch, s.Attempt}, state})
	}
	if err := t.Check(); err != nil {
		return t, until, 0, fmt.Errorf("parse message: %w", err)
	}
	if m.Wait == nil {
		return t, until, 0, nil
	}
	until, wait, err = m.Wait.parse()
	return t, until, wait, err
}

func (w *wireWait) parse() (until Until, wait time.Duration, err error) {
	if math.IsNaN(w.Seconds) || w.Seconds < 0 || w.Seconds > MaxWait.Seconds() {
		return until, 0, fmt.Errorf("parse message: check wait: got %g seconds; want 0 to %g", w.Seconds, MaxWait.Seconds())
	}
	until = Until{Epoch: w.Epoch, Missing: w.Missing}
	if w.For != waitForSession {
		if until.State, err = ParseState(w.For); err != nil {
			return until, 0, fmt.Errorf("parse message: check wait: got %.20q; want session, tentative, reflecting or committed", w.For)
		}
	}
	return until, time.Duration(w.Seconds * float64(time.Second)), nil
}

type wireAttempt struct {
	Epoch   int64  `json:"epoch"`
	Attempt string `json:"attempt"`
}

type wireCount struct {
	wireAttempt

	Tentative  int `json:"tentative"`
	Reflecting int `json:"reflecting"`
	Committed  int `json:"committed"`
}

type wireAnswer struct {
	Version      int          `json:"version"`
	Domains      int          `json:"domains"`
	Heard        int          `json:"heard"`
	Session      string       `json:"session"`
	Joined       int          `json:"joined"`
	Recoverable  *wireAttempt `json:"recoverable"`
	Lost         *wireAttempt `json:"lost"`
	Saves        []wireCount  `json:"saves"`
	Missing      []string     `json:"missing,omitempty"`
	MissingCount int          `json:"missing_count,omitempty"`
}

// MarshalJSON writes the answer as it is sent.
func (a *Answer) MarshalJSON() ([]byte, error) {
	out := wireAnswer{
		Version: Version, Domains: a.Domains, Heard: a.Heard, Session: a.Session, Joined: a.Joined,
		Saves: wireCounts(a.Saves), Missing: a.Missing, MissingCount: a.MissingCount,
	}
	if a.Recoverable.OK {
		out.Recoverable = &wireAttempt{a.Recoverable.V.Epoch, a.Recoverable.V.Session}
	}
	if a.Lost.OK {
		out.Lost = &wireAttempt{a.Lost.V.Epoch, a.Lost.V.Session}
	}
	return json.Marshal(out)
}

func wireCounts(counts []Count) []wireCount {
	out := make([]wireCount, 0, len(counts))
	for _, c := range counts {
		out = append(out, wireCount{wireAttempt{c.Epoch, c.Session}, c.Tentative, c.Reflecting, c.Committed})
	}
	return out
}

type wireJob struct {
	Job       string      `json:"job"`
	Domains   int         `json:"domains"`
	Heard     int         `json:"heard"`
	Session   string      `json:"session"`
	Joined    int         `json:"joined"`
	Saves     []wireCount `json:"saves"`
	LastHeard time.Time   `json:"last_heard"`
}

// MarshalJSON writes what is known of a job.
func (j *Job) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireJob{j.Name, j.Domains, j.Heard, j.Session, j.Joined, wireCounts(j.Saves), j.LastHeard.UTC()})
}
