// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/score"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// rawJob is a line of what one method made of one job.
type rawJob struct {
	Record string `json:"record"` // job
	outcome
	Suspects []rawSuspect `json:"suspects,omitempty"`
}

// rawSuspect is whom a method did not name, and why, where it says so.
type rawSuspect struct {
	Ranks []int64         `json:"ranks"`
	Score float64         `json:"score"`
	Why   json.RawMessage `json:"why,omitempty"`
}

// rawFinding is a line of one accusation, with all that it was judged by, so that
// confidence can be fitted anew from the evidence.
type rawFinding struct {
	Record string `json:"record"` // finding
	*task
	Method     string          `json:"method"`
	Class      string          `json:"class"`
	Cause      string          `json:"cause,omitempty"`
	Ranks      []int64         `json:"ranks,omitempty"`
	Peer       *int64          `json:"peer,omitempty"`
	Host       string          `json:"host,omitempty"`
	Op         string          `json:"op,omitempty"`
	Score      float64         `json:"score"`
	Confidence *float64        `json:"confidence,omitempty"`
	CostShare  *float64        `json:"cost_share,omitempty"`
	First      *int64          `json:"first,omitempty"`
	Last       *int64          `json:"last,omitempty"`
	Emitted    int64           `json:"emitted"`
	Accuses    bool            `json:"accuses"`
	Who        bool            `json:"who"`
	WithClass  bool            `json:"with_class"`
	WithOp     bool            `json:"with_op"`
	Victim     bool            `json:"victim"`
	Of         string          `json:"of,omitempty"` // family of the culprit that it is right about
	Evidence   json.RawMessage `json:"evidence,omitempty"`
}

// writeRaw writes what every table was made of.
func writeRaw(path string, all []outcome) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write raw rows: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil && e != nil {
			err = fmt.Errorf("write raw rows: %w", e)
		}
	}()
	b := bufio.NewWriter(f)
	if err := encodeRaw(b, all); err != nil {
		return fmt.Errorf("write raw rows: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write raw rows: %w", err)
	}
	return nil
}

func encodeRaw(w io.Writer, all []outcome) error {
	enc := json.NewEncoder(w)
	for i := range all {
		job := rawJob{Record: "job", outcome: all[i]}
		job.Result.Rows = nil
		for _, a := range all[i].Result.Suspects {
			job.Suspects = append(job.Suspects, rawSuspect{a.Ranks, a.Score, valid(a.Evidence)})
		}
		if err := enc.Encode(job); err != nil {
			return err
		}
		for k := range all[i].Result.Rows {
			if err := enc.Encode(all[i].finding(&all[i].Result.Rows[k])); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *outcome) finding(r *score.Row) rawFinding {
	out := rawFinding{
		Record: "finding", task: o.task, Method: o.Method, Class: r.Class, Cause: r.Cause, Ranks: r.Ranks, Peer: known(r.Peer),
		Host: r.Host, Op: r.Op, Score: r.Score, Confidence: known(r.Confidence), CostShare: known(r.CostShare),
		First: known(r.First), Last: known(r.Last), Emitted: r.Emitted, Accuses: r.Accuses, Who: r.Who,
		WithClass: r.WithClass, WithOp: r.WithOp, Victim: r.Victim, Of: r.Family,
	}
	out.Evidence = valid(r.Evidence)
	return out
}

// valid returns JSON, nil where it is none.
func valid(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return nil
}

func known[T any](o model.Optional[T]) *T {
	if !o.OK {
		return nil
	}
	return &o.V
}
