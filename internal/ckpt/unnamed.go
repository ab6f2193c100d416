// SPDX-License-Identifier: Apache-2.0

package ckpt

import "github.com/lockstep-otel/lockstep/internal/model"

// unnamed is for a save that only its contents call by an epoch: saves of other epochs were
// written under the same names before, so that a part which says none may be of any of them.
func (b *builder) unnamed() {
	for i := range b.save.Domains {
		d := &b.save.Domains[i]
		if d.Kind != model.DomainCommit && d.Kind != model.DomainTracker && d.State == model.DomainCommitted && !d.Own {
			b.save.Unproven = "neither the name of the save nor " + string(d.Kind) + " " + d.ID + " says an epoch, so that what an earlier save left under the same name would leave no trace"
			return
		}
	}
}
