// SPDX-License-Identifier: Apache-2.0

package part

import (
	"fmt"
	"path/filepath"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// standInCUPTI is the file of the stand-in. Its soname is not NVIDIA's, so that
// PyTorch, which needs the real one, loads that beside it.
const standInCUPTI = "libcupti-standin.so"

// seenAs is the status of a check that came out right.
func seenAs(k *kit.Kit) report.Status {
	if k.GPU == nil {
		return report.StandIn
	}
	return report.Shown
}

// kernels adds how CUPTI fared in the ranks of a job, once for all cases.
func (c rankCase) kernels(p *report.Part, k *kit.Kit, rings string) {
	if c.fault != rankCases[0].fault {
		return
	}
	seen, err := countKernels(rings)
	if err != nil {
		p.Add("kernels", report.Failed, err.Error())
		return
	}
	status, text := seenAs(k), "CUPTI delivers kernels of both processes on one GPU"
	figures := []report.Figure{}
	for _, s := range seen {
		if s.state != ring.CUPTIActive || s.kernels == 0 {
			status, text = report.Failed, fmt.Sprintf("rank %d: CUPTI is %s (its result %d), %d kernels; want active, and some", s.rank, s.state, s.result, s.kernels)
		}
		figures = append(figures, report.Figure{Name: fmt.Sprintf("kernels and copies a step of rank %d", s.rank), Value: float64(s.kernels) / ranksSteps, Unit: "1"})
	}
	if len(seen) != ranksWorld {
		status, text = report.Failed, fmt.Sprintf("got %d rings; want %d", len(seen), ranksWorld)
	}
	p.Add("kernels", status, text, figures...)
}

type kernelCount struct {
	rank    int32
	state   ring.CUPTIState
	result  uint32
	kernels int
}

// countKernels reads the rings of a folder.
func countKernels(dir string) ([]kernelCount, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+ring.Suffix))
	if err != nil {
		return nil, fmt.Errorf("list rings: %w", err)
	}
	var seen []kernelCount
	for _, path := range paths {
		r, err := ring.Open(path, ring.Options{})
		if err != nil {
			return nil, err
		}
		s := kernelCount{rank: r.Header().Rank}
		s.state, s.result = r.CUPTI()
		r.Snapshot(func(_ int, rec *ring.Record) {
			if rec.Kind() == ring.KindKernel {
				s.kernels++
			}
		})
		if err := r.Close(); err != nil {
			return nil, fmt.Errorf("close ring: %w", err)
		}
		seen = append(seen, s)
	}
	return seen, nil
}
