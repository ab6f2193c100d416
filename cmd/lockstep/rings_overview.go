// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// ringOverview is one line of `lockstep rings --json`. What is not known is left out.
type ringOverview struct {
	Ring        string      `json:"ring"`
	Rank        *int32      `json:"rank,omitempty"`
	WorldSize   *int32      `json:"world_size,omitempty"`
	Job         string      `json:"job,omitempty"`
	JobName     string      `json:"job_name,omitempty"`
	PID         uint64      `json:"pid"`
	Host        string      `json:"host"`
	Life        string      `json:"life"`
	Level       string      `json:"level"`
	Written     uint64      `json:"records_written"`
	Lanes       int         `json:"lanes"`        // of threads
	LanesTaken  int         `json:"lanes_taken"`  // of those
	Sharing     int         `json:"lane_sharers"` // threads without one, as far as they are known
	Witnesses   []string    `json:"witnesses"`
	CUPTI       string      `json:"cupti"`
	CUPTIResult uint32      `json:"cupti_result,omitempty"`
	Scopes      []ringScope `json:"scopes"`
	Open        []ringOpen  `json:"open"`
}

// ringOpen is an operation in flight.
type ringOpen struct {
	Name  string   `json:"name"`
	State string   `json:"state"`
	For   uint64   `json:"for_ns"`
	Op    opDetail `json:"detail"`
}

// overview prints a ring as one object.
func (o *ringsOptions) overview(w io.Writer, r *ring.Ring, life *ringLife) error {
	h := r.Header()
	open := r.InFlight(nil)
	now := life.until(open)
	sortOpen(open)
	state, result := r.CUPTI()
	lanes := lanesOf(r)
	line := ringOverview{
		Ring: printable(r.Path()), Rank: numberOf(h.Rank), WorldSize: numberOf(h.WorldSize), Job: h.JobID, JobName: h.JobName, PID: h.PID, Host: h.HostName,
		Life: life.words(), Level: r.Level().String(), Witnesses: append([]string{}, witnessNames(r)...),
		Written: lanes.written, Lanes: lanes.own, LanesTaken: lanes.taken, Sharing: lanes.sharing,
		CUPTI: state.String(), CUPTIResult: result, Scopes: append([]ringScope{}, ringScopes(r, now)...), Open: []ringOpen{},
	}
	d := dumper{ring: r, comms: commsOf(r)}
	for i := range open {
		rec := &open[i].Record
		line.Open = append(line.Open, ringOpen{
			Name: r.String(uint16(rec.Func())), State: open[i].State.String(), For: uint64(age(now, rec.EnqueueBegin())), Op: d.op(rec),
		})
	}
	if err := json.NewEncoder(w).Encode(line); err != nil {
		return fmt.Errorf("write overview of %s: %w", r.Path(), err)
	}
	return r.Err()
}

func numberOf(n int32) *int32 {
	if n == ring.None {
		return nil
	}
	return &n
}

func commsOf(r *ring.Ring) map[uint16]ring.Comm {
	comms := map[uint16]ring.Comm{}
	for _, c := range r.Comms(nil) {
		comms[c.Index] = c
	}
	return comms
}
