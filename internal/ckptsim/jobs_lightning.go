// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"maps"
)

// lightningJobs save with Lightning's ModelCheckpoint, or with NeMo's.
func lightningJobs() []Job {
	return []Job{
		{
			Name: "lightning", Format: "lightning", World: 1, make: func(s *Save) { lightning(s, s.Dir) },
			dir: func(e int64) string { return fmt.Sprintf("epoch=0-step=%d.ckpt", e) },
		},
		{
			Name: "lightning, last.ckpt", Format: "lightning", World: 1, InPlace: true, make: func(s *Save) { lightning(s, s.Dir) },
			dir: func(int64) string { return "last.ckpt" },
		},
		{
			Name: "lightning, FSDP", Format: "lightning", World: 3, make: lightningFSDP,
			dir: func(e int64) string { return fmt.Sprintf("epoch=0-step=%d.ckpt", e) },
		},
		{
			Name: "lightning, FSDP, last.ckpt", Format: "lightning", World: 3, InPlace: true, Unproven: true, make: lightningFSDP,
			dir: func(int64) string { return "last.ckpt" },
		},
		{
			Name: "nemo", Format: "nemo", World: 3, make: nemo,
			dir: func(e int64) string { return fmt.Sprintf("gpt--val_loss=2.10-step=%d-consumed_samples=%d.0", e, e*16) },
		},
	}
}

// lightning writes one file of everything, directly under its name.
func lightning(s *Save, name string) {
	s.rank(0).part(name, torchSaved(dict{
		"epoch", 0, "global_step", s.Epoch, "pytorch-lightning_version", "2.5.5",
		"state_dict",
		dict{"weight", weights(48, s.seed(), "weight")},
		"optimizer_states",
		list{adam(s.seed(), "optimizer", s.Epoch)},
		"lr_schedulers",
		list{dict{"last_epoch", s.Epoch}},
	}))
}

// lightningFSDP writes a DCP save, and then what is no tensor.
func lightningFSDP(s *Save) {
	s.dcp()
	s.rank(0).part(s.Dir+"/meta.pt", torchSaved(dict{"epoch", 0, "global_step", s.Epoch, "pytorch-lightning_version", "2.5.5"}))
	s.barrier()
}

// nemo: a marker says that the save is unfinished, until all ranks have written.
func nemo(s *Save) {
	marker := s.Dir + "-unfinished"
	s.rank(0).scratch(marker, nil)
	s.Gone = append(s.Gone, marker)
	s.rank(0).mkdir(s.Dir)
	s.barrier()
	inner := newSave(s.Epoch, s.Dir+"/weights", len(s.Ranks))
	inner.Attempt = s.Attempt
	inner.rank(0).side(s.Dir+"/trainer.yaml", fmt.Appendf(nil, "max_steps: 100\nseed: %d\n", s.Epoch))
	inner.dcp()
	inner.rank(0).part(inner.Dir+"/common.pt", torchSaved(dict{"iteration", s.Epoch, "checkpoint_version", 3.0}))
	inner.rank(0).part(inner.Dir+"/metadata.json", []byte(`{"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1}`))
	inner.barrier()
	s.take(inner)
	s.rank(0).remove(marker)
	s.barrier()
}

// take adds what another save does to this one.
func (s *Save) take(inner *Save) {
	for n := range s.Ranks {
		s.Ranks[n] = append(s.Ranks[n], inner.Ranks[n]...)
	}
	maps.Copy(s.Files, inner.Files)
	maps.Copy(s.Side, inner.Side)
	s.Gone = append(s.Gone, inner.Gone...)
}
