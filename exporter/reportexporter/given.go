// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"fmt"
	"sync"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report/journal"
)

// given has the findings of requests that are not written yet, to report at the end what is missing.
type given struct {
	mu        sync.Mutex
	revisions *bounded.Map[string, int64] // the newest of each id
}

// maxGivenBytes bounds the ids of findings that are not written yet.
const maxGivenBytes = 1 << 20

func newGiven() *given {
	return &given{revisions: bounded.NewMap(bounded.MapConfig[string, int64]{
		Entries: journal.MaxFindings, Bytes: maxGivenBytes, Size: func(id string, _ int64) int { return len(id) },
	})}
}

func (g *given) add(findings []model.Finding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range findings {
		f := &findings[i]
		if revision, ok := g.revisions.Peek(f.ID); !ok || revision < f.Revision {
			g.revisions.Set(f.ID, f.Revision)
		}
	}
}

// done drops a finding that is written, or has no news. A newer revision stays.
func (g *given) done(f *model.Finding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if revision, ok := g.revisions.Peek(f.ID); ok && revision <= f.Revision {
		g.revisions.Delete(f.ID)
	}
}

func (g *given) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.revisions.Len() == 0
}

// String returns how many findings are not written.
func (g *given) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.revisions.Len()
	if g.revisions.Evicted() > 0 {
		return fmt.Sprintf("%d or more findings", n)
	}
	if n == 1 {
		return "1 finding"
	}
	return fmt.Sprintf("%d findings", n)
}
