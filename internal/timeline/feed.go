// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Feed collects outcomes for one reader, whoever calls Advance.
type Feed struct {
	of       *Timeline
	models   map[string]model.ClockModel // the newest of each clock
	findings []model.Finding
	edges    []model.ClockEdge
}

// maxEdgesWaiting bounds the edges that wait for a reader: those of 20 s from traces at their fastest.
const maxEdgesWaiting = 16_384

// maxWaiting bounds the findings that wait for a reader: what one that takes every
// second sees when 4,096 clocks change their state in it.
const maxWaiting = 4096

// Feed returns a subscription to all further outcomes.
func (t *Timeline) Feed() *Feed {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &Feed{of: t, models: map[string]model.ClockModel{}}
	t.feeds[f] = true
	return f
}

// Take returns what came since the last call: of each clock the newest model.
func (f *Feed) Take() Outcome {
	f.of.mu.Lock()
	models, out := f.models, Outcome{Findings: f.findings, Edges: f.edges}
	f.models, f.findings, f.edges = map[string]model.ClockModel{}, nil, nil
	f.of.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(models)) {
		out.Models = append(out.Models, models[id])
	}
	return out
}

// Close ends the subscription.
func (f *Feed) Close() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	delete(f.of.feeds, f)
}

func (t *Timeline) feed(out *Outcome) {
	for f := range t.feeds {
		for i := range out.Models {
			if _, waits := f.models[out.Models[i].Clock]; !waits && len(f.models) >= t.opt.MaxClocks {
				t.stats.FeedsOverflowed.Add(1)
				continue
			}
			f.models[out.Models[i].Clock] = out.Models[i]
		}
		room := maxWaiting - len(f.findings)
		if over := len(out.Findings) - room; over > 0 {
			t.stats.FeedsOverflowed.Add(int64(over))
		}
		f.findings = append(f.findings, out.Findings[:min(room, len(out.Findings))]...)
		room = min(maxEdgesWaiting-len(f.edges), len(out.Edges))
		t.stats.FeedsOverflowed.Add(int64(len(out.Edges) - room))
		f.edges = append(f.edges, out.Edges[:room]...)
	}
}
