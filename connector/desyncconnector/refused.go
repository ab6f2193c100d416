// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxRefused and maxRefusedBytes bound the findings that wait to be sent again. One job never has as
// many open findings.
const (
	maxRefused      = 1024
	maxRefusedBytes = 16 << 20
)

// refused are the findings that the consumer would not take, each as it was last known. The zero value is
// ready.
type refused struct {
	findings *bounded.Map[string, model.Finding] // by id, the one that was refused first in front
}

func (r *refused) list() *bounded.Map[string, model.Finding] {
	if r.findings == nil {
		r.findings = bounded.NewMap(bounded.MapConfig[string, model.Finding]{
			Entries: maxRefused, Bytes: maxRefusedBytes, Size: sizeOf,
		})
	}
	return r.findings
}

func sizeOf(_ string, f model.Finding) int { return f.Bytes() }

// add notes what was refused, and returns for how many there was no room.
func (r *refused) add(findings []model.Finding) (dropped int64) {
	list := r.list()
	for i := range findings {
		f := &findings[i]
		list.Delete(f.ID)
		if !list.Fits(f.ID, *f) {
			dropped++
			continue
		}
		list.Set(f.ID, *f)
	}
	return dropped
}

// taken forgets what the consumer has heard of since.
func (r *refused) taken(findings []model.Finding) {
	for i := range findings {
		r.list().Delete(findings[i].ID)
	}
}

func (r *refused) all() (all []model.Finding) {
	for _, f := range r.list().All() {
		all = append(all, f)
	}
	return all
}

// closed are those that nobody tells of any more.
func (r *refused) closed() []model.Finding {
	return slices.DeleteFunc(r.all(), func(f model.Finding) bool { return f.Status != model.StatusClosed })
}
