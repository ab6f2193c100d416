// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"slices"
)

func here(int64) string { return "." }

// dcpJobs save with PyTorch DCP.
func dcpJobs() []Job {
	step := func(s *Save) dcpItem { return dcpItem{fqn: "step", value: s.Epoch} }
	titan := func(s *Save) []dcpItem {
		return []dcpItem{
			{fqn: "train_state.step", value: tensor{float32(s.Epoch)}},
			{fqn: "lr_scheduler", value: dict{"last_epoch", s.Epoch}},
		}
	}
	return []Job{
		{
			Name: "dcp, overwrite in place", Format: "dcp", World: 3, dir: here, InPlace: true,
			make: func(s *Save) { s.dcp(step(s)) },
		},
		{
			Name: "dcp, overwrite in place, no step", Format: "dcp", World: 3, dir: here, InPlace: true, Unproven: true,
			make: func(s *Save) { s.dcp() },
		},
		{
			Name: "dcp, each rank for itself", Format: "dcp", World: 3, dir: here, InPlace: true, TellWorld: true, Blurs: KillBlurs,
			make: func(s *Save) { s.dcpLocal(step(s)) },
		},
		{
			Name: "torchtitan", Format: "torchtitan", World: 3,
			dir:  func(e int64) string { return fmt.Sprintf("step-%d", e) },
			make: func(s *Save) { s.dcp(titan(s)...) },
		},
		{
			Name: "torchtitan, not synced", Format: "torchtitan", World: 3,
			dir:  func(e int64) string { return fmt.Sprintf("step-%d", e) },
			make: func(s *Save) { s.dcp(titan(s)...); s.unsync() },
		},
	}
}

// unsync leaves out every sync: sync_files=False, or a file system that only says that it did.
func (s *Save) unsync() {
	for n, ops := range s.Ranks {
		s.Ranks[n] = slices.DeleteFunc(ops, func(op Op) bool { return op.Kind == Fsync || op.Kind == FsyncDir })
	}
}
