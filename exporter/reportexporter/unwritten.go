// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"fmt"
	"sync"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report/journal"
)

// unwritten counts findings that were received and are not written yet: the end reports how many are missing.
type unwritten struct {
	mu        sync.Mutex
	revisions *bounded.Map[string, int64] // the newest of each id
}

// maxUnwrittenBytes bounds the ids of findings that are not written yet.
const maxUnwrittenBytes = 1 << 20

func newUnwritten() *unwritten {
	return &unwritten{revisions: bounded.NewMap(bounded.MapConfig[string, int64]{
		Entries: journal.MaxFindings, Bytes: maxUnwrittenBytes, Size: func(id string, _ int64) int { return len(id) },
	})}
}

func (u *unwritten) add(findings []model.Finding) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range findings {
		f := &findings[i]
		if revision, ok := u.revisions.Peek(f.ID); !ok || revision < f.Revision {
			u.revisions.Set(f.ID, f.Revision)
		}
	}
}

// done drops a finding that is written, or has no news. A newer revision stays.
func (u *unwritten) done(f *model.Finding) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if revision, ok := u.revisions.Peek(f.ID); ok && revision <= f.Revision {
		u.revisions.Delete(f.ID)
	}
}

func (u *unwritten) empty() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.revisions.Len() == 0
}

// String returns how many findings are not written.
func (u *unwritten) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.revisions.Len()
	if u.revisions.Evicted() > 0 {
		return fmt.Sprintf("%d or more findings", n)
	}
	if n == 1 {
		return "1 finding"
	}
	return fmt.Sprintf("%d findings", n)
}
