// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// medianRatio is the relative GPU score of NVIDIA's Resiliency Extension (NVRx,
// Apache-2.0), from its description: a rank's score is the mean over its kernels of
// fastest median of any rank / own median, weighted by the kernel's total time; below
// 0.75 it is a straggler. Communication kernels are left out, as they are there. It
// knows no class but the GPU's, and cannot see a host or a link.
//
// It reports in rounds, of 300 s there and of reportSteps steps here, from what was
// recorded since the last. A rank that was a straggler in any round is named. Its
// scores of sections that a program marks are not part of this.
type medianRatio struct {
	ranks   []kernelTimes
	steps   int
	worst   []float64 // 1 - the rank's lowest score
	flagged []bool
}

// kernelTimes are the durations of one rank's kernels in the present round.
type kernelTimes struct {
	names   map[string]int
	kernels []kernelTime
}

type kernelTime struct {
	name  string
	took  []float32 // s
	total float64
}

const (
	ratioThreshold = 0.75
	reportSteps    = 8
	// maxSamples of a kernel and round: the median of 128 is known to a tenth of the
	// deviation of one.
	maxSamples = 128
)

func newMedianRatio() Method { return &medianRatio{} }

func (m *medianRatio) Begin(ranks []model.Rank) {
	m.ranks = make([]kernelTimes, len(ranks))
	for i := range m.ranks {
		m.ranks[i].names = map[string]int{}
	}
	m.worst, m.flagged = make([]float64, len(ranks)), make([]bool, len(ranks))
}

func (m *medianRatio) Add(rank int, ops []model.Op) {
	r := &m.ranks[rank]
	for i := range ops {
		if o := &ops[i]; o.Kind == model.KindCompute {
			r.add(o.Name, seconds(o))
		}
	}
}

func (r *kernelTimes) add(name string, took float64) {
	at, ok := r.names[name]
	if !ok {
		if len(r.kernels) >= maxNames {
			return
		}
		at = len(r.kernels)
		r.names[name] = at
		r.kernels = append(r.kernels, kernelTime{name: name})
	}
	k := &r.kernels[at]
	k.total += took
	if len(k.took) < maxSamples {
		k.took = append(k.took, float32(took))
	}
}

func (m *medianRatio) Close(int64) {
	m.steps++
	if m.steps%reportSteps == 0 {
		m.report()
	}
}

// report scores all ranks on the round, and forgets it.
func (m *medianRatio) report() {
	fastest := map[string]float64{}
	for i := range m.ranks {
		for k := range m.ranks[i].kernels {
			if k := &m.ranks[i].kernels[k]; len(k.took) > 0 {
				slices.Sort(k.took)
				if best, ok := fastest[k.name]; !ok || k.median() < best {
					fastest[k.name] = k.median()
				}
			}
		}
	}
	for i := range m.ranks {
		score, ok := m.ranks[i].score(fastest)
		if !ok {
			continue
		}
		m.worst[i] = max(m.worst[i], 1-score)
		m.flagged[i] = m.flagged[i] || score < ratioThreshold
		m.ranks[i].forget()
	}
}

// median returns the median of sorted values.
func (k *kernelTime) median() float64 {
	return float64(stats.MedianLow(k.took)+stats.MedianHigh(k.took)) / 2
}

func (r *kernelTimes) score(fastest map[string]float64) (score float64, ok bool) {
	sum, weight := 0.0, 0.0
	for k := range r.kernels {
		if k := &r.kernels[k]; len(k.took) > 0 && k.median() > 0 {
			sum += k.total * fastest[k.name] / k.median()
			weight += k.total
		}
	}
	if weight == 0 {
		return 0, false
	}
	return sum / weight, true
}

func (r *kernelTimes) forget() {
	for k := range r.kernels {
		r.kernels[k].took, r.kernels[k].total = r.kernels[k].took[:0], 0
	}
}

func (m *medianRatio) Named() (out []Accusation) {
	values := make([]float64, len(m.worst))
	for i, v := range m.worst {
		if m.flagged[i] {
			values[i] = v
		}
	}
	for _, r := range strongest(values, len(values)) {
		out = append(out, rankAccusation(r, values[r], true))
	}
	return out
}

func (m *medianRatio) End() []Accusation {
	out := m.Named()
	for _, r := range strongest(m.worst, maxSuspects) {
		if !m.flagged[r] {
			out = append(out, rankAccusation(r, m.worst[r], false))
		}
	}
	return out
}
