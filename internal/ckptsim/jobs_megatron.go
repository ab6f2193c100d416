// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
)

const megatronTracker = "latest_checkpointed_iteration.txt"

func megatronDir(e int64) string { return fmt.Sprintf("iter_%07d", e) }

// megatronJobs save with Megatron-LM.
func megatronJobs() []Job {
	return []Job{
		{Name: "megatron, torch_dist", Format: "megatron_dist", World: 3, dir: megatronDir, make: func(s *Save) { megatronDist(s, false) }},
		{Name: "megatron, torch_dist, integrity.json", Format: "megatron_dist", World: 3, Digests: true, dir: megatronDir, make: func(s *Save) { megatronDist(s, true) }},
		{Name: "megatron, legacy", Format: "megatron_legacy", World: 4, Blurs: CrashBlurs, dir: megatronDir, make: megatronLegacy},
	}
}

// megatronDist: shards, a barrier, metadata.json, the digests of all if they are asked for, the tracker.
func megatronDist(s *Save, digests bool) {
	s.dcp(dcpItem{fqn: "common_state", value: dict{"iteration", s.Epoch}}, dcpItem{fqn: "rng_state/shard_0_1", value: dict{"random_rng_state", s.seed()}})
	s.rank(0).part(path.Join(s.Dir, "metadata.json"), []byte(`{"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1}`))
	s.barrier()
	if digests {
		s.rank(0).integrity()
		s.barrier()
	}
	s.megatronPoint()
}

// integrity writes the digests of what the save has. A loader that is not asked to compare them does
// without.
func (r rank) integrity() {
	files := map[string]string{}
	for name, data := range r.save.Files {
		files[path.Base(name)] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	b, err := json.MarshalIndent(map[string]any{"algorithm": "sha256", "files": files}, "", "  ")
	if err != nil {
		panic(err) // texts alone
	}
	r.side(path.Join(r.save.Dir, "integrity.json"), b)
}

// megatronPoint sets the tracker. Nothing is synced, and nothing renamed.
func (s *Save) megatronPoint() {
	s.rank(0).point(megatronTracker, fmt.Appendf(nil, "%d", s.Epoch))
	s.barrier()
}

// megatronLegacy: two tensor-parallel by two pipeline ranks, each with its file; the
// optimizer's state of the first data-parallel rank beside it.
func megatronLegacy(s *Save) {
	s.each(func(r rank) {
		dir := fmt.Sprintf("%s/mp_rank_%02d_%03d", s.Dir, r.n%2, r.n/2)
		r.mkdir(s.Dir)
		r.mkdir(dir)
		r.part(dir+"/distrib_optim.pt", torchSaved(adam(s.seed(), dir, s.Epoch)))
		r.part(dir+"/model_optim_rng.pt", torchSaved(dict{
			"args",
			object{global{"argparse", "Namespace"}, dict{
				"tensor_model_parallel_size", 2, "pipeline_model_parallel_size", 2, "expert_model_parallel_size", 1,
				"data_parallel_size", 1, "use_distributed_optimizer", true, "world_size", 4,
			}},
			"checkpoint_version", 3.0,
			"iteration", s.Epoch,
			"model",
			dict{"weight", weights(24, s.seed(), dir), "bias", weights(8, s.seed(), dir+".bias")},
			"opt_param_scheduler",
			dict{"num_steps", s.Epoch * 16},
			"rng_state",
			list{dict{"cuda_rng_state", weights(8, s.seed(), dir+".rng")}},
		}))
	})
	s.barrier()
	s.megatronPoint()
}
