// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// scaled is what a shard of ZeRO has in fp16: steps of the optimizer, 0 for a state that is still empty, and
// iterations of the loss scaler, 0 for none.
type scaled struct{ steps, iterations int }

func zero16(t *testing.T, fsys fstest.MapFS, tag string, step, skipped int, shards ...scaled) {
	t.Helper()
	counts := make([]int, len(shards))
	zero(t, fsys, "", step, skipped, counts...)
	for r, s := range shards {
		state := []pair{}
		if s.steps > 0 {
			state = []pair{{"0", []pair{{"step", s.steps}}}}
		}
		of := []pair{{"base_optimizer_state", []pair{{"state", state}, {"param_groups", []pair{{"lr", 1}}}}}}
		if s.iterations > 0 {
			of = append(of, pair{"loss_scaler", []pair{{"cur_scale", 1024}, {"cur_iter", s.iterations}}})
		}
		fsys[fmt.Sprintf("global_step%d/zero_pp_rank_%d_mp_rank_00_optim_states.pt", step, r)] = torchFile(t, pair{"optimizer_state_dict", of})
	}
	own := fmt.Sprintf("global_step%d", step)
	if tag == "" || tag == own {
		return
	}
	for name, file := range sub(t, fsys, own) {
		fsys[tag+"/"+name] = file
		delete(fsys, own+"/"+name)
	}
	fsys["latest"] = text(tag)
}

// While the loss scaler skips steps, an optimizer has no state and counts nothing; the scaler counts on.
func TestLossScaler_Shards(t *testing.T) {
	type tag struct {
		name          string
		step, skipped int
		shards        []scaled
	}
	first := tag{"", 2, 2, []scaled{{0, 2}, {0, 2}}}
	for name, tc := range map[string]struct {
		tags    []tag
		verdict epoch.Verdict
	}{
		"all skipped":                        {[]tag{first}, epoch.Converged},
		"some skipped":                       {[]tag{first, {"", 4, 2, []scaled{{2, 4}, {2, 4}}}}, epoch.Converged},
		"all skipped in each":                {[]tag{first, {"", 4, 4, []scaled{{0, 4}, {0, 4}}}}, epoch.Converged},
		"a scaler that counts from a resume": {[]tag{{"", 4, 2, []scaled{{2, 1}, {2, 1}}}}, epoch.Converged},
		"no scaler, and no state yet":        {[]tag{{"", 2, 2, []scaled{{0, 0}, {0, 0}}}}, epoch.Converged},
		"a tag of the user's":                {[]tag{{"best", 4, 2, []scaled{{2, 4}, {2, 4}}}}, epoch.Converged},

		"the first rank of the save before":      {[]tag{first, {"", 4, 2, []scaled{{0, 2}, {2, 4}}}}, epoch.MixedEpoch},
		"the last rank of the save before":       {[]tag{first, {"", 4, 2, []scaled{{2, 4}, {0, 2}}}}, epoch.MixedEpoch},
		"one of three, all skipped":              {[]tag{{"", 4, 4, []scaled{{0, 4}, {0, 2}, {0, 4}}}}, epoch.MixedEpoch},
		"the same count of steps, another of it": {[]tag{{"", 4, 2, []scaled{{2, 4}, {2, 3}}}}, epoch.MixedEpoch},
		"no state, and no scaler":                {[]tag{{"", 4, 2, []scaled{{0, 0}, {2, 0}}}}, epoch.Converging},
		"no state in one of a user's tag":        {[]tag{{"best", 4, 2, []scaled{{2, 4}, {0, 2}}}}, epoch.MixedEpoch},
		"all of the save before, all skipped":    {[]tag{first, {"", 4, 2, []scaled{{0, 2}, {0, 2}}}}, epoch.Converging},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for _, of := range tc.tags {
				zero16(t, fsys, of.name, of.step, of.skipped, of.shards...)
			}
			r := judge(t, loader, fsys)
			require.Equal(t, tc.verdict, r.Verdict, "%s %+v", r.Why, r.Judged.Problems)
		})
	}
}
