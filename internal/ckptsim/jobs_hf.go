// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"path"
)

// hfJobs save with Hugging Face's Trainer, or leave a model of safetensors alone.
func hfJobs() []Job {
	dir := func(e int64) string { return fmt.Sprintf("checkpoint-%d", e) }
	return []Job{
		{Name: "hf trainer, one process", Format: "hf_trainer", World: 1, Blurs: CrashBlurs, dir: dir, make: func(s *Save) { hfTrainer(s, 1) }},
		{Name: "hf trainer, three processes", Format: "hf_trainer", World: 3, Blurs: KillBlurs, dir: dir, TellWorld: true, make: func(s *Save) { hfTrainer(s, 1) }},
		{Name: "hf trainer, sharded model", Format: "hf_trainer", World: 2, Blurs: KillBlurs, dir: dir, TellWorld: true, make: func(s *Save) { hfTrainer(s, 3) }},
		{
			Name: "safetensors, overwrite in place", Format: "safetensors", World: 1, dir: here, InPlace: true, Unproven: true,
			make: func(s *Save) { s.rank(0).safetensorsModel(3) },
		},
		{
			Name: "safetensors, each shard says its step", Format: "safetensors", World: 1, dir: here, InPlace: true, Blurs: CrashBlurs,
			make: func(s *Save) { s.rank(0).safetensorsNamed(3) },
		},
		{
			Name: "safetensors, a shard of each rank", Format: "safetensors", World: 3, dir: here, InPlace: true, Blurs: CrashBlurs,
			make: safetensorsRanks,
		},
		{
			Name: "safetensors, one file that says its step", Format: "safetensors", World: 1, dir: here, InPlace: true,
			make: func(s *Save) {
				s.rank(0).part("model.safetensors", safetensorsFile(s.seed(), fmt.Sprintf(`,"iteration":"%d"`, s.Epoch), shardTensors(0)...))
			},
		},
	}
}

// hfTrainer: rank 0 writes the model, arguments, optimizer, scheduler, its RNG states and
// last its state; the others write their RNG states, and nobody waits. Nothing is synced.
func hfTrainer(s *Save, shards int) {
	s.each(func(r rank) {
		r.mkdir(s.Dir)
		rng := "rng_state.pth"
		if len(s.Ranks) > 1 {
			rng = fmt.Sprintf("rng_state_%d.pth", r.n)
		}
		if r.n == 0 {
			r.hfModel(shards)
		}
		r.part(s.Dir+"/"+rng, torchSaved(dict{"python", tuple{3, tuple{s.Epoch, int64(r.n)}, nil}, "cpu", weights(8, s.seed(), rng)}))
		if r.n == 0 {
			r.part(s.Dir+"/trainer_state.json", fmt.Appendf(nil,
				`{"best_metric": null, "epoch": 0.5, "global_step": %d, "is_world_process_zero": true, "log_history": [{"loss": 1.5, "step": %d}], "max_steps": 100}`, s.Epoch, s.Epoch))
		}
	})
}

func (r rank) hfModel(shards int) {
	s := r.save
	r.side(s.Dir+"/config.json", []byte(`{"model_type": "llama", "num_hidden_layers": 2}`))
	if shards == 1 {
		r.part(s.Dir+"/model.safetensors", safetensorsFile(s.seed(), "", shardTensors(0)...))
	} else {
		r.safetensorsModel(shards)
	}
	r.part(s.Dir+"/training_args.bin", torchSaved(object{global{"transformers.training_args", "TrainingArguments"}, dict{
		"output_dir", "out", "save_only_model", false, "save_steps", 10, "seed", 42,
	}}))
	r.part(s.Dir+"/optimizer.pt", torchSaved(adam(s.seed(), "optimizer", s.Epoch)))
	r.part(s.Dir+"/scheduler.pt", torchSaved(dict{"base_lrs", list{0.001}, "last_epoch", s.Epoch, "_step_count", s.Epoch + 1, "_last_lr", list{0.0005}}))
}

// safetensorsModel writes the shards of a model and then their index. Nothing in them says
// the step.
func (r rank) safetensorsModel(shards int) {
	for i := range shards {
		r.safetensorsShard(i, shards, "")
	}
	r.part(path.Join(r.save.Dir, "model.safetensors.index.json"), safetensorsIndex(shards, ""))
}

func (r rank) safetensorsShard(i, shards int, metadata string) {
	r.part(path.Join(r.save.Dir, shardName(i, shards)), safetensorsFile(r.save.seed(), metadata, shardTensors(i)...))
}

// safetensorsRanks: each rank writes its shard, and rank 0 when all have the index, which says the step
// too.
func safetensorsRanks(s *Save) {
	s.each(func(r rank) { r.safetensorsShard(r.n, len(s.Ranks), fmt.Sprintf(`,"step":"%d"`, s.Epoch)) })
	s.barrier()
	s.rank(0).part("model.safetensors.index.json", safetensorsIndex(len(s.Ranks), fmt.Sprintf(`,"step":%d`, s.Epoch)))
	s.barrier()
}

// safetensorsNamed has shards that say their step. What their index lists is the same for each save of
// the job, so that one of an earlier save does as well; its own bytes are others.
func (r rank) safetensorsNamed(shards int) {
	for i := range shards {
		r.safetensorsShard(i, shards, fmt.Sprintf(`,"global_step":"%d"`, r.save.Epoch))
	}
	r.side("model.safetensors.index.json", safetensorsIndex(shards, fmt.Sprintf(`,"save_id":"%d"`, r.save.seed())))
}
