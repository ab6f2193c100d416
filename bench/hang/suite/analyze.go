// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/hang"
)

// Judge makes a report of states. Tests put another in the engine's place.
type Judge func(in *Input) *desync.Report

// Input is what is known of one incident.
type Input struct {
	Job       desync.Job
	States    []model.RankState
	Absent    []model.Absence
	Witnesses []desync.Witness
	Doubt     desync.Doubt
}

// open tells whether anything is.
func (in *Input) open() bool {
	return slices.ContainsFunc(in.States, func(s model.RankState) bool {
		return slices.ContainsFunc(s.Ops, func(o model.StateOp) bool { return !o.Done })
	})
}

// perNode is how many ranks a host of the simulated job has.
const perNode = 8

// read makes an input of a job's dumps, as their files are read. timed: it is known when
// each was written.
func read(j *hang.Job, e hang.Evidence, seed uint64, timed bool) (*Input, error) {
	dumps, absent := j.Collect(e, seed)
	world := int64(j.World())
	in := &Input{Job: desync.Job{Name: "job", ID: "job", WorldSize: model.Some(world)}}
	for _, d := range dumps {
		s, why, err := state(&d)
		if err != nil {
			return nil, err
		}
		if why != nil {
			in.Absent = append(in.Absent, model.Absence{Rank: d.Rank, Reason: model.AbsentUnreadable, Detail: why.Error()})
			continue
		}
		if e.Joined {
			join(j, &s)
		}
		if timed {
			s.Time = d.At
		}
		in.States = append(in.States, s)
	}
	for _, a := range absent {
		in.Absent = append(in.Absent, model.Absence{Rank: a.Rank, Reason: model.AbsenceReason(a.Reason)})
	}
	if t := j.Truth(); t.Family == hang.Network {
		r := t.Faults[0].Ranks[0]
		in.Witnesses = append(in.Witnesses, desync.Witness{Kind: "fabric", What: "port mlx5_0 is down", Host: hostOf(r), Rank: model.Some(r), Network: true, From: j.Last()})
	}
	return in, nil
}

func hostOf(rank int64) string { return fmt.Sprintf("node%03d", rank/perNode) }

// state reads a dump. why: it is so badly torn that nothing can be read. err: it is whole,
// and was not read so.
func state(d *hang.Dump) (s model.RankState, why, err error) {
	r, why := flightrecorder.Decode(d.Data, flightrecorder.DefaultOptions())
	switch {
	case why != nil && !d.Torn:
		return s, nil, fmt.Errorf("read whole dump of rank %d: %w", d.Rank, why)
	case why != nil:
		return s, why, nil
	case !d.Torn && r.Partial != "":
		return s, nil, fmt.Errorf("read whole dump of rank %d: got partial: %s", d.Rank, r.Partial)
	}
	rank := model.Rank{JobName: "job", JobID: "job", Rank: d.Rank, HostName: hostOf(d.Rank)}
	return r.State(rank, hang.FileName(d.Rank), flightrecorder.StateOptions{}), nil, nil
}

// join adds what dumps do not hold and recorders in the process do: the roots of
// collectives, and what the host is in, which for all but the stuck ones is a forward pass.
func join(j *hang.Job, s *model.RankState) {
	s.Scope, s.ScopeFor = "forward", model.Some(600.0)
	for _, f := range j.Truth().Faults {
		if f.Scope != "" && f.Ranks[0] == s.Rank.Rank {
			s.Scope = f.Scope
		}
	}
	for i := range s.Ops {
		o := &s.Ops[i]
		if root, ok := j.Root(int(s.Rank.Rank), s.Comms[o.Comm].Comm.ID, o.Seq); ok && o.Kind == model.KindCollective {
			o.Root = model.Some(root)
		}
	}
}
