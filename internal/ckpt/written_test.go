// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// When a save was begun is what the oldest of its files says.
func TestTheFirstWrite(t *testing.T) {
	for job, file := range map[string]string{
		"torchtitan":              "step-100/__1_0.distcp",
		"deepspeed, ZeRO 1":       "global_step100/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
		"hf trainer, one process": "checkpoint-100/optimizer.pt",
	} {
		dir := saves(t, job, 100)
		first := time.Unix(1_700_000_000, 5)
		require.NoError(t, os.Chtimes(filepath.Join(dir, file), first, first))
		root := ckpt.Read(t.Context(), os.DirFS(dir), ckpt.Options{})
		require.Len(t, root.Saves, 1)
		require.True(t, first.Equal(root.Saves[0].FirstWrite), "%s: %s", job, root.Saves[0].FirstWrite)
	}
}
