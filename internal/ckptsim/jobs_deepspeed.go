// SPDX-License-Identifier: Apache-2.0

package ckptsim

import "fmt"

// deepspeedJobs save with DeepSpeed's engine.
func deepspeedJobs() []Job {
	tag := func(e int64) string { return fmt.Sprintf("global_step%d", e) }
	last := func(int64) string { return "last" } // a tag that the user chose
	return []Job{
		{Name: "deepspeed, ZeRO 1", Format: "deepspeed", World: 3, Blurs: KillBlurs, dir: tag, make: func(s *Save) { deepspeed(s, 1, true) }},
		{Name: "deepspeed, ZeRO 3", Format: "deepspeed", World: 3, Blurs: KillBlurs, dir: tag, make: func(s *Save) { deepspeed(s, 3, true) }},
		{Name: "deepspeed, optimizer without steps", Format: "deepspeed", World: 3, Blurs: KillBlurs, dir: tag, make: func(s *Save) { deepspeed(s, 1, false) }},
		{Name: "deepspeed, one tag", Format: "deepspeed", World: 3, Blurs: KillBlurs, InPlace: true, dir: last, make: func(s *Save) { deepspeed(s, 1, true) }},
		{Name: "deepspeed, one tag, optimizer without steps", Format: "deepspeed", World: 3, Blurs: KillBlurs, InPlace: true, Unproven: true, dir: last, make: func(s *Save) { deepspeed(s, 1, false) }},
	}
}

// deepspeed: rank 0 sets latest after its own part, before the barrier. Nothing is synced.
func deepspeed(s *Save, stage int64, counts bool) {
	s.deepspeedTag(stage, counts)
	s.rank(0).point("latest", []byte(s.Dir))
	s.barrier()
}

func (s *Save) deepspeedTag(stage int64, counts bool) {
	s.rank(0).mkdir(s.Dir)
	s.barrier()
	s.each(func(r rank) {
		switch {
		case stage == 3:
			r.part(fmt.Sprintf("%s/zero_pp_rank_%d_mp_rank_00_model_states.pt", s.Dir, r.n), deepspeedModel(s, r.n, stage))
		case r.n == 0:
			r.part(s.Dir+"/mp_rank_00_model_states.pt", deepspeedModel(s, 0, stage))
		}
		name := fmt.Sprintf("zero.%d", r.n)
		inner := adam(s.seed(), name, s.Epoch)
		if !counts {
			inner = dict{"state", dict{0, dict{"exp_avg", weights(24, s.seed(), name)}}, "param_groups", list{dict{"lr", 0.001}}}
		}
		r.part(fmt.Sprintf("%s/bf16_zero_pp_rank_%d_mp_rank_00_optim_states.pt", s.Dir, r.n), torchSaved(dict{
			"optimizer_state_dict",
			dict{
				"zero_stage", stage, "partition_count",
				list{len(s.Ranks)},
				"base_optimizer_state", inner,
				"single_partition_of_fp32_groups",
				list{weights(48, s.seed(), name+".fp32")},
			},
			"ds_config",
			dict{"zero_optimization", dict{"stage", stage}},
			"ds_version", "0.17.6",
		}))
	})
}

func deepspeedModel(s *Save, rank int, stage int64) []byte {
	return torchSaved(dict{
		"module",
		dict{"weight", weights(24, s.seed(), fmt.Sprint("module", rank))},
		"buffer_names",
		list{},
		"optimizer", nil, "lr_scheduler",
		dict{"last_batch_iteration", s.Epoch},
		"skipped_steps", 0, "global_steps", s.Epoch, "global_samples", s.Epoch * 16,
		"dp_world_size", len(s.Ranks), "mp_world_size", 1,
		"ds_config",
		dict{"zero_optimization", dict{"stage", stage}},
		"ds_version", "0.17.6",
	})
}
