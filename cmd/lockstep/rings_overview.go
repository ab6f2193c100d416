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
	PID         uint64      `json:"pid"`
	Host        string      `json:"host"`
	Life        string      `json:"life"`
	Level       string      `json:"level"`
	Written     uint64      `json:"records_written"`
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
	line := ringOverview{
		Ring: printable(r.Path()), Rank: numberOf(h.Rank), WorldSize: numberOf(h.WorldSize), Job: h.JobID, PID: h.PID, Host: h.HostName,
		Life: life.words(), Level: r.Level().String(), Witnesses: append([]string{}, witnessNames(r)...),
		CUPTI: state.String(), CUPTIResult: result, Scopes: append([]ringScope{}, ringScopes(r, now)...), Open: []ringOpen{},
	}
	for _, l := range r.Lanes(nil) {
		line.Written += l.Head
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
