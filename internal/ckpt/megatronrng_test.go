// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// megatronItems is a save of Megatron's whose items begin with the names given.
func megatronItems(names string) fstest.MapFS {
	f := fstest.MapFS{
		"latest_checkpointed_iteration.txt": document("200"),
		"iter_0000200/metadata.json":        document(`{"sharded_backend": "torch_dist"}`),
	}
	dcpIn(f, "iter_0000200", strings.Fields(names)...)
	return f
}

// Megatron saves states of random numbers with the optimizer, unless --no-save-rng is given.
func TestMegatronDist_RandomStatesAmongItems(t *testing.T) {
	for names, want := range map[string]bool{
		"common_state decoder.w optimizer.state.exp_avg.w rng_state/shard_0_1":   true,
		"common_state decoder.w optimizer.state.exp_avg.w rng_state":             true,
		"common_state decoder.w optimizer.state.exp_avg.w":                       false,
		"common_state decoder.w chained_0.optimizer.state.exp_avg.w":             false,
		"common_state decoder.w optimizer.state.exp_avg.w decoder.rng_stateless": false,
		"common_state/x decoder.w optimizer.state.exp_avg.w opt_param_scheduler": false,
	} {
		r, ok := safe(t, megatronItems(names), ckpt.Options{})
		require.Equal(t, want, ok, "%s: %s", names, r.Why)
		alone, ok := safe(t, below(megatronItems(names), "iter_0000200/"), ckpt.Options{})
		require.Equal(t, want, ok, "%s, alone: %s", names, alone.Why)
		if !want {
			require.Contains(t, told(r), "a resume needs --no-load-rng", names)
			require.Contains(t, told(alone), "a resume needs --no-load-rng", names)
		}
	}
}
