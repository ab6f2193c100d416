// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// Frameworks that were asked for weights alone leave a complete save, which a caller may accept. What lacks only a
// part of the rest was cut off, or lost it.
func TestWeightsAlone(t *testing.T) {
	accelerate := func(gone ...string) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			for _, name := range gone {
				without("checkpoint_0/"+name, "checkpoint_1/"+name)(f)
			}
		}
	}
	for name, tc := range map[string]struct {
		whole fstest.MapFS
		do    func(fstest.MapFS)
		alone bool
		why   string
	}{
		"verl":                            {verlFSDP(t), dropParts("/optim_", "/extra_state_"), true, "has no optim and no extra_state of any rank"},
		"verl, of one role":               {verlFSDP(t), dropParts("200/critic/optim_", "200/critic/extra_state_"), true, "critic has no optim"},
		"verl, no optimizers":             {verlFSDP(t), dropParts("/optim_"), false, "which is absent"},
		"verl, cut off":                   {verlFSDP(t), dropParts("/optim_", "/extra_state_", "/fsdp_config.json"), false, "which is absent"},
		"verl, a shard of it gone":        {verlFSDP(t), dropParts("/optim_", "/extra_state_", "200/actor/model_world_size_3_rank_1"), false, "which is absent"},
		"verl, no data":                   {verlFSDP(t), dropParts("/optim_", "/extra_state_", "200/data.pt"), false, "which is absent"},
		"accelerate":                      {accelerateAt("checkpoint_%d", "model.safetensors", 0, 1)(t), accelerate("optimizer.bin", "scheduler.bin"), true, "no optimizer or scheduler"},
		"accelerate, a scheduler":         {accelerateAt("checkpoint_%d", "model.safetensors", 0, 1)(t), accelerate("optimizer.bin"), false, "which is absent"},
		"accelerate, cut off":             {accelerateAt("checkpoint_%d", "model.safetensors", 0, 1)(t), accelerate("optimizer.bin", "scheduler.bin", "random_states_"), false, "there is no save"},
		"accelerate, since the save":      {accelerateAt("checkpoint_%d", "model.safetensors", 0, 1)(t), without("checkpoint_1/optimizer.bin", "checkpoint_1/scheduler.bin"), false, "which is absent"},
		"torchtune, after the last epoch": {torchtuneRun(t), without("recipe_state/", "epoch_0/"), true, "there is no recipe_state"},
	} {
		t.Run(name, func(t *testing.T) {
			r, ok := safe(t, tc.whole, ckpt.Options{})
			require.True(t, ok, "whole: %s", r.Why)
			tc.do(tc.whole)
			r, ok = safe(t, tc.whole, ckpt.Options{})
			require.False(t, ok)
			require.Contains(t, r.Why, tc.why)
			require.Equal(t, tc.alone, r.Verdict == preflight.WeightsOnly, r.Why)
			places := []preflight.Place{{Name: "x", Root: ckpt.Read(t.Context(), tc.whole, ckpt.Options{})}}
			require.Equal(t, tc.alone, preflight.JudgeAccepting(places, r.Epoch, preflight.Accept{WeightsOnly: true}).OK())
		})
	}
}

// dropParts is a change that takes away all files with such a part in their paths.
func dropParts(parts ...string) func(fstest.MapFS) {
	return func(f fstest.MapFS) {
		for name := range f {
			for _, part := range parts {
				if strings.Contains(name, part) {
					delete(f, name)
				}
			}
		}
	}
}
