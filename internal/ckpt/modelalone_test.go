// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// A model alone in folders that are called as the Trainer's is not the Trainer's: who wrote it is not known.
func TestModelAlone(t *testing.T) {
	single := func(t *testing.T) fstest.MapFS {
		t.Helper()
		return fstest.MapFS{"checkpoint-500/model.safetensors": weightsOf(`{"format": "pt"}`, "w")}
	}
	for name, tc := range map[string]struct {
		make    func(*testing.T) fstest.MapFS
		do      func(fstest.MapFS)
		verdict epoch.Verdict
		format  ckpt.Format
	}{
		"one file": {single, func(fstest.MapFS) {}, epoch.Unknown, ckpt.FormatModel},
		"shards with their index": {single, all(without("checkpoint-500/model.safetensors"),
			put("checkpoint-500/model.safetensors.index.json", indexOf("{}", "w: a.safetensors")), put("checkpoint-500/a.safetensors", weightsOf("{}", "w"))), epoch.Unknown, ckpt.FormatModel},
		"a shard gone": {single, all(without("checkpoint-500/model.safetensors"),
			put("checkpoint-500/model.safetensors.index.json", indexOf("{}", "w: a.safetensors"))), epoch.Converging, ckpt.FormatModel},
		"of torch.save":                 {single, all(without("checkpoint-500/model.safetensors"), put("checkpoint-500/pytorch_model.bin", torchSaved(t, table{"w": 1}))), epoch.Unknown, ckpt.FormatModel},
		"an adapter":                    {single, all(without("checkpoint-500/"), put("checkpoint-500/adapter_config.json", document("{}")), put("checkpoint-500/adapter_model.safetensors", weightsOf("{}", "w"))), epoch.Converging, ckpt.FormatHFTrainer},
		"torn":                          {single, cut("checkpoint-500/model.safetensors"), epoch.Unknown, ckpt.FormatModel},
		"with its configuration":        {single, put("checkpoint-500/config.json", document("{}")), epoch.Converging, ckpt.FormatHFTrainer},
		"the Trainer's":                 {single, put("checkpoint-500/training_args.bin", torchSaved(t, table{"seed": 1})), epoch.Converging, ckpt.FormatHFTrainer},
		"with an optimizer":             {single, put("checkpoint-500/optimizer.pt", optimizerAt(t, 500)), epoch.Converging, ckpt.FormatHFTrainer},
		"with ranks' states":            {single, put("checkpoint-500/rng_state_0.pth", torchSaved(t, table{"w": 1})), epoch.Converging, ckpt.FormatHFTrainer},
		"with a scheduler's scaler":     {single, put("checkpoint-500/scaler.pt", torchSaved(t, table{"w": 1})), epoch.Converging, ckpt.FormatHFTrainer},
		"with a part that is under way": {single, put("checkpoint-500/model.safetensors.tmp", document("x")), epoch.Converging, ckpt.FormatHFTrainer},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.make(t)
			tc.do(f)
			r, ok := safe(t, f, ckpt.Options{})
			require.False(t, ok)
			require.NotNil(t, r.Judged, r.Why)
			require.Equal(t, tc.format, r.Judged.Format)
			require.EqualValues(t, 500, r.Epoch.V)
			require.False(t, r.Frontier.OK)
			require.Equal(t, tc.verdict, r.Verdict, r.Why)
			if tc.verdict == epoch.Unknown && name != "torn" {
				require.Contains(t, r.Why, "it is a model alone, of which the writer is not known")
			}
		})
	}
	beside := single(t)
	for name, f := range saveOfTrainer(t) {
		beside[name] = f
	}
	r, ok := safe(t, beside, ckpt.Options{})
	require.False(t, ok)
	require.Equal(t, ckpt.FormatHFTrainer, r.Judged.Format, "among saves of the Trainer it is one that was cut off")
	require.EqualValues(t, 400, r.Frontier.V)
	several := single(t)
	several["checkpoint-400/model.safetensors"] = weightsOf("{}", "w")
	r, ok = safe(t, several, ckpt.Options{})
	require.False(t, ok)
	require.Contains(t, r.Why, "nothing says which of 2 saves a resume would take")
}

// saveOfTrainer is a whole save of the Trainer, at step 400.
func saveOfTrainer(t *testing.T) fstest.MapFS {
	t.Helper()
	const dir = "checkpoint-400/"
	return fstest.MapFS{
		dir + "config.json": document("{}"), dir + "model.safetensors": weightsOf("{}", "w"), dir + "training_args.bin": torchSaved(t, table{"seed": 1}),
		dir + "optimizer.pt": optimizerAt(t, 400), dir + "scheduler.pt": torchSaved(t, table{"last_epoch": 400}),
		dir + "rng_state.pth": torchSaved(t, table{"python": 1}), dir + "trainer_state.json": {Data: []byte(`{"global_step": 400}`), ModTime: weightsOf("{}").ModTime},
	}
}
