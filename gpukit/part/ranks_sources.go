// SPDX-License-Identifier: Apache-2.0

package part

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// standInCUPTI is the file of the stand-in. Its soname is not NVIDIA's, so that
// PyTorch, which needs the real one, loads that beside it.
const standInCUPTI = "libcupti-standin.so"

// sources adds which rows of docs/capabilities.md the rings of a job show.
func (c rankCase) sources(p *report.Part, right report.Status, dir string) {
	name := c.name + "-sources"
	seen, err := readRings(filepath.Join(dir, "rings"))
	if err != nil {
		p.Add(name, report.Failed, err.Error())
		return
	}
	problems := ringsProblems(seen, ranksWorld)
	figures := []report.Figure{}
	var all ringRows
	for _, s := range seen {
		rows := rowsOf(s)
		problems = append(problems, rows.problems(s, c.nccl)...)
		all.add(rows)
		rank := s.Header.Rank
		figures = append(figures,
			report.Figure{Name: fmt.Sprintf("kernels and copies a step of rank %d", rank), Value: float64(rows.cupti) / ranksSteps, Unit: "1"},
			report.Figure{Name: fmt.Sprintf("collectives a step of rank %d", rank), Value: float64(rows.operations) / ranksSteps, Unit: "1"},
			report.Figure{Name: fmt.Sprintf("device time a step of rank %d", rank), Value: float64(s.Ran) / 1e6 / ranksSteps, Unit: "ms"},
			report.Figure{Name: fmt.Sprintf("longest kernel of rank %d", rank), Value: float64(s.Longest) / 1e6, Unit: "ms"})
	}
	judge(p, right, name, problems, all.String(), figures...)
}

// ringRows counts what the rings have of each row of docs/capabilities.md.
type ringRows struct {
	operations int // that the program reported, or NCCL
	host       int // of them by NCCL
	kernels    int // of these with kernel times
	waits      int // of these with waits of a proxy
	scopes     int
	cupti      int // kernels, copies and sets
}

func rowsOf(s *ringSeen) (rows ringRows) {
	rows.operations, rows.scopes, rows.cupti = s.ops(), int(s.Kinds[ring.KindScope.String()]), int(s.Kinds[ring.KindKernel.String()])
	if s.Witnesses&ring.WitnessNCCL == 0 {
		return rows
	}
	rows.host = rows.operations
	for i := range s.Comms {
		for j := range s.Comms[i].Ops {
			if s.Comms[i].Ops[j].has(ring.FlagKernel) {
				rows.kernels++
			}
			if s.Comms[i].Ops[j].has(ring.FlagWaits) {
				rows.waits++
			}
		}
	}
	return rows
}

func (r *ringRows) add(o ringRows) {
	r.operations, r.host, r.kernels, r.waits = r.operations+o.operations, r.host+o.host, r.kernels+o.kernels, r.waits+o.waits
	r.scopes, r.cupti = r.scopes+o.scopes, r.cupti+o.cupti
}

// problems tests that a ring has all rows that its job can have.
func (r *ringRows) problems(s *ringSeen, nccl bool) (problems []string) {
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("rank %d: ", s.Header.Rank)+fmt.Sprintf(format, args...))
	}
	if s.CUPTI != ring.CUPTIActive || r.cupti == 0 {
		add("CUPTI is %s (its result %d), with %d kernels; want active, and some", s.CUPTI, s.Result, r.cupti)
	}
	if r.operations == 0 {
		add("got no collective; want some")
	}
	if byNCCL := s.Witnesses&ring.WitnessNCCL != 0; byNCCL != nccl {
		add("got NCCL as a source of its ring: %t; want %t", byNCCL, nccl)
	}
	if r.scopes == 0 {
		add("got no scope; want some")
	}
	if nccl && (r.kernels == 0 || r.waits == 0) {
		add("got %d operations with kernel times and %d with waits of a proxy; want some of each", r.kernels, r.waits)
	}
	return problems
}

// String names the rows that the rings show, with their counts.
func (r ringRows) String() string {
	var rows []string
	for _, row := range []struct {
		name  string
		count int
		what  string
	}{
		{"NCCL host events", r.host, "operations"},
		{"kernel channels", r.kernels, "operations with kernel times"},
		{"proxy steps", r.waits, "operations with waits"},
		{"scopes", r.scopes, "scopes"},
		{"CUPTI", r.cupti, "kernels and copies"},
	} {
		if row.count > 0 {
			rows = append(rows, fmt.Sprintf("%s (%d %s)", row.name, row.count, row.what))
		}
	}
	text := "capability rows in the rings: " + strings.Join(rows, ", ")
	if r.host == 0 {
		text += fmt.Sprintf("; and %d collectives that the program reported", r.operations)
	}
	return text
}
