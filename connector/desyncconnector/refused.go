// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxRefused and maxRefusedBytes bound the findings that wait to be sent again. One job never has as
// many open findings.
const (
	maxRefused      = 1024
	maxRefusedBytes = 16 << 20
)

// refused are the findings that the consumer would not take, each as it was last known.
type refused struct {
	list  []model.Finding
	bytes int
}

func (r *refused) at(id string) int {
	return slices.IndexFunc(r.list, func(f model.Finding) bool { return f.ID == id })
}

// add notes what was refused, and returns for how many there was no room.
func (r *refused) add(findings []model.Finding) (dropped int64) {
	for i := range findings {
		if k := r.at(findings[i].ID); k >= 0 {
			r.drop(k)
		}
		size := findings[i].Bytes()
		if len(r.list) >= maxRefused || r.bytes+size > maxRefusedBytes {
			dropped++
			continue
		}
		r.bytes += size
		r.list = append(r.list, findings[i])
	}
	return dropped
}

func (r *refused) drop(k int) {
	r.bytes -= r.list[k].Bytes()
	r.list = slices.Delete(r.list, k, k+1)
}

// taken forgets what the consumer has heard of since.
func (r *refused) taken(findings []model.Finding) {
	for i := range findings {
		if k := r.at(findings[i].ID); k >= 0 {
			r.drop(k)
		}
	}
}

func (r *refused) all() []model.Finding { return slices.Clone(r.list) }

// closed are those that nobody tells of any more.
func (r *refused) closed() []model.Finding {
	return slices.DeleteFunc(r.all(), func(f model.Finding) bool { return f.Status != model.StatusClosed })
}
