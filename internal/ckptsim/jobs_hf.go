package ckptsim

import "fmt"

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
		r.part(s.Dir+"/model.safetensors", safetensorsFile(s.seed(), shardTensors(0)...))
	} else {
		r.safetensorsModel(shards)
	}
	r.part(s.Dir+"/training_args.bin", torchSaved(object{global{"transformers.training_args", "TrainingArguments"}, dict{
		"output_dir", "out", "save_only_model", false, "save_steps", 10, "seed", 42,
	}}))
	r.part(s.Dir+"/optimizer.pt", torchSaved(adam(s.seed(), "optimizer", s.Epoch)))
	r.part(s.Dir+"/scheduler.pt", torchSaved(dict{"base_lrs", list{0.001}, "last_epoch", s.Epoch, "_step_count", s.Epoch + 1, "_last_lr", list{0.0005}}))
}

// safetensorsModel writes the shards of a model and then their index.
func (r rank) safetensorsModel(shards int) {
	prefix := r.save.Dir + "/"
	if r.save.Dir == "." {
		prefix = ""
	}
	for i := range shards {
		r.part(prefix+shardName(i, shards), safetensorsFile(r.save.seed(), shardTensors(i)...))
	}
	r.part(prefix+"model.safetensors.index.json", safetensorsIndex(shards))
}
