// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// counted is a save of the Trainer with what its optimizer and its scheduler count.
type counted struct{ step, optimizer, scheduler int }

func trainer(t *testing.T, scaler bool, all ...counted) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, c := range all {
		hf(t, fsys, c.step)
		dir := fmt.Sprintf("checkpoint-%d/", c.step)
		fsys[dir+"optimizer.pt"] = torchFile(t, pair{"state", []pair{{"0", []pair{{"step", c.optimizer}}}}})
		fsys[dir+"scheduler.pt"] = torchFile(t, pair{"last_epoch", c.scheduler})
		if scaler {
			fsys[dir+"scaler.pt"] = torchFile(t, pair{"scale", 1024})
		}
	}
	return fsys
}

// Counters go on from save to save at some pace; one that does not is of another save.
func TestCountersOfTheTrainer(t *testing.T) {
	for name, tc := range map[string]struct {
		saves  []counted
		scaler bool
		doubt  string // the file in doubt of the newest save; "" for none
	}{
		"each step":                           {[]counted{{100, 100, 100}, {200, 200, 200}}, false, ""},
		"16 optimizer steps a step":           {[]counted{{100, 1600, 100}, {200, 3200, 200}}, false, ""},
		"16 optimizer steps, three saves":     {[]counted{{100, 1600, 100}, {200, 3200, 200}, {300, 4800, 300}}, false, ""},
		"16 optimizer steps, stopped early":   {[]counted{{100, 1600, 100}, {200, 3050, 200}, {300, 4400, 300}}, false, ""},
		"16 optimizer steps, one save":        {[]counted{{200, 3200, 200}}, false, ""},
		"a scheduler by epochs":               {[]counted{{100, 100, 1}, {200, 200, 2}}, false, ""},
		"a scheduler by epochs, one save":     {[]counted{{200, 200, 2}}, false, ""},
		"a scheduler by long epochs":          {[]counted{{100, 100, 0}, {200, 200, 0}, {300, 300, 1}, {400, 400, 1}}, false, ""},
		"both by other counts":                {[]counted{{100, 400, 1}, {200, 800, 2}}, false, ""},
		"a scheduler of four processes":       {[]counted{{100, 100, 400}, {200, 200, 800}}, false, ""},
		"gradients accumulated":               {[]counted{{100, 25, 25}, {200, 50, 50}}, false, ""},
		"gradients accumulated, one save":     {[]counted{{200, 50, 50}}, false, ""},
		"steps skipped":                       {[]counted{{100, 97, 97}, {200, 195, 195}}, true, ""},
		"steps skipped since":                 {[]counted{{100, 100, 100}, {200, 197, 197}}, true, ""},
		"steps skipped, without a scaler":     {[]counted{{100, 100, 100}, {200, 197, 197}}, false, ""},
		"half of the steps skipped":           {[]counted{{100, 100, 100}, {200, 150, 150}}, true, ""},
		"steps skipped, one save":             {[]counted{{200, 197, 197}}, true, ""},
		"begun with an optimizer":             {[]counted{{100, 5100, 100}, {200, 5200, 200}}, false, ""},
		"begun with an optimizer, one save":   {[]counted{{100, 5100, 100}}, false, ""},
		"a scheduler that counts nothing":     {[]counted{{100, 100, 7}, {200, 200, 7}, {300, 300, 7}}, false, ""},
		"the optimizer of the save before":    {[]counted{{100, 100, 100}, {200, 100, 200}}, false, "optimizer.pt"},
		"the same, of 16 steps a step":        {[]counted{{100, 1600, 100}, {200, 1600, 200}}, false, "optimizer.pt"},
		"the same, of three saves":            {[]counted{{100, 1600, 100}, {200, 3200, 200}, {300, 3200, 300}}, false, "optimizer.pt"},
		"the same, of the first":              {[]counted{{100, 1600, 100}, {200, 3200, 200}, {300, 1600, 300}}, false, "optimizer.pt"},
		"the same, where steps are skipped":   {[]counted{{100, 98, 98}, {200, 98, 197}}, true, "optimizer.pt"},
		"the same, begun with an optimizer":   {[]counted{{100, 5100, 100}, {200, 5100, 200}}, false, "optimizer.pt"},
		"of a save that is gone":              {[]counted{{100, 100, 100}, {200, 150, 200}}, false, "optimizer.pt"},
		"of a save that is gone, of 16 steps": {[]counted{{100, 1600, 100}, {200, 3200, 200}, {300, 3600, 300}}, false, "optimizer.pt"},
		"of a later save":                     {[]counted{{100, 100, 100}, {200, 300, 200}}, false, "optimizer.pt"},
		"started anew":                        {[]counted{{100, 1600, 100}, {200, 20, 200}}, false, "optimizer.pt"},
		"started anew, one save":              {[]counted{{200, 20, 200}}, false, "optimizer.pt"},
		"the scheduler of the save before":    {[]counted{{100, 100, 100}, {200, 200, 100}}, false, "scheduler.pt"},
		"a scheduler started anew":            {[]counted{{100, 100, 400}, {200, 200, 3}}, false, "scheduler.pt"},
	} {
		t.Run(name, func(t *testing.T) {
			r := judge(t, loader, trainer(t, tc.scaler, tc.saves...))
			if tc.doubt == "" {
				require.True(t, r.OK(), "%s %+v", r.Why, r.Judged.Problems)
				for _, s := range r.Saves {
					require.Equal(t, epoch.Converged, s.Judgement.Verdict, "%+v", s.Problems)
				}
				return
			}
			require.False(t, r.OK())
			require.Equal(t, epoch.Converging, r.Verdict, "not mixed: it may be whole")
			require.Contains(t, r.Why, tc.doubt+", which is tentative")
			require.Equal(t, ckpt.CheckWitness, r.Judged.Problems[0].Check)
			require.Contains(t, r.Judged.Problems[0].What, "it is of another save, or was started anew")
			if n := len(tc.saves); n > 1 {
				require.EqualValues(t, tc.saves[n-2].step, r.Frontier.V, "the saves before are whole")
			}
		})
	}
}

// An optimizer counts on: where all saves have one count, the first has it.
func TestOptimizersOfOneCount(t *testing.T) {
	r := judge(t, loader, trainer(t, false, counted{100, 1600, 100}, counted{200, 1600, 200}, counted{300, 1600, 300}))
	require.False(t, r.OK())
	require.EqualValues(t, 100, r.Frontier.V)
}

// zero is a tag of ZeRO in which the optimizers of both ranks count so many steps.
func zero(t *testing.T, fsys fstest.MapFS, dir string, step, skipped int, counts ...int) {
	t.Helper()
	tag := fmt.Sprintf("%sglobal_step%d/", dir, step)
	fsys[tag+"mp_rank_00_model_states.pt"] = torchFile(t, pair{"global_steps", step}, pair{"skipped_steps", skipped},
		pair{"dp_world_size", len(counts)}, pair{"mp_world_size", 1}, pair{"optimizer", nil})
	for r, n := range counts {
		fsys[fmt.Sprintf("%szero_pp_rank_%d_mp_rank_00_optim_states.pt", tag, r)] = torchFile(t, pair{"optimizer_state_dict", []pair{{"step", n}}})
	}
	fsys[dir+"latest"] = text(fmt.Sprintf("global_step%d", step))
}

func TestCountersOfDeepSpeed(t *testing.T) {
	type tag struct {
		step, skipped int
		counts        []int
	}
	for name, tc := range map[string]struct {
		tags    []tag
		verdict epoch.Verdict
	}{
		"each step":                         {[]tag{{100, 0, []int{100, 100}}, {200, 0, []int{200, 200}}}, epoch.Converged},
		"steps skipped":                     {[]tag{{100, 3, []int{97, 97}}, {200, 5, []int{195, 195}}}, epoch.Converged},
		"half of the steps skipped":         {[]tag{{100, 0, []int{100, 100}}, {200, 100, []int{100, 100}}}, epoch.Converged},
		"begun with an optimizer":           {[]tag{{100, 0, []int{5100, 5100}}, {200, 0, []int{5200, 5200}}}, epoch.Converged},
		"begun with an optimizer, one save": {[]tag{{200, 0, []int{5200, 5200}}}, epoch.Converged},
		"four steps a step":                 {[]tag{{100, 0, []int{400, 400}}, {200, 0, []int{800, 800}}}, epoch.Converged},
		"begun anew before both":            {[]tag{{100, 0, []int{40, 40}}, {200, 0, []int{140, 140}}}, epoch.Converged},
		"more ranks since":                  {[]tag{{100, 0, []int{400, 400}}, {200, 0, []int{800, 800, 800}}}, epoch.Converged},
		"all of the save before":            {[]tag{{100, 0, []int{400, 400}}, {200, 0, []int{400, 400}}}, epoch.Converging},
		"all of the save before, exactly":   {[]tag{{100, 0, []int{100, 100}}, {200, 0, []int{100, 100}}}, epoch.Converging},
		"started anew":                      {[]tag{{100, 0, []int{100, 100}}, {200, 0, []int{30, 30}}}, epoch.Converging},
		"started anew, one save":            {[]tag{{200, 0, []int{30, 30}}}, epoch.Converging},
		"ranks that differ":                 {[]tag{{200, 0, []int{5200, 5100}}}, epoch.MixedEpoch},
		"ranks that differ, of skips":       {[]tag{{200, 3, []int{197, 200}}}, epoch.MixedEpoch},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for _, of := range tc.tags {
				zero(t, fsys, "", of.step, of.skipped, of.counts...)
			}
			r := judge(t, loader, fsys)
			require.Equal(t, tc.verdict, r.Verdict, "%s %+v", r.Why, r.Judged.Problems)
		})
	}
}

// The Trainer's scheduler leaves out what DeepSpeed's loss scaler skipped, of which the tag in the save tells.
func TestSchedulerOfTheTrainerWithDeepSpeed(t *testing.T) {
	for name, tc := range map[string]struct {
		skipped, scheduler, optimizer int
		want                          bool
	}{
		"none skipped":            {0, 200, 200, true},
		"some skipped":            {3, 197, 197, true},
		"half skipped":            {100, 100, 100, true},
		"the scheduler counts on": {3, 200, 197, true},
		"one of the save before":  {3, 97, 197, false},
		"optimizers of it":        {3, 197, 97, false},
	} {
		fsys := fstest.MapFS{}
		for _, step := range []int{100, 200} {
			dir := fmt.Sprintf("checkpoint-%d/", step)
			hf(t, fsys, step)
			delete(fsys, dir+"optimizer.pt")
			skipped, scheduler, optimizer := tc.skipped, tc.scheduler, tc.optimizer
			if step == 100 {
				skipped, scheduler, optimizer = min(skipped, 3), 100-min(skipped, 3), 100-min(skipped, 3)
			}
			zero(t, fsys, dir, step, skipped, optimizer, optimizer)
			fsys[dir+"scheduler.pt"] = torchFile(t, pair{"last_epoch", scheduler})
			for rank := range 2 {
				fsys[fmt.Sprintf("%srng_state_%d.pth", dir, rank)] = torchFile(t, pair{"python", rank})
			}
			delete(fsys, dir+"rng_state.pth")
		}
		r := judge(t, loader, fsys)
		require.Equal(t, tc.want, r.OK(), "%s: %s %+v", name, r.Why, r.Judged.Problems)
	}
}

// A trainer makes several steps of DeepSpeed in one of its own: the tag in its save counts them.
func TestTagsThatCountOtherSteps(t *testing.T) {
	type save struct {
		step, tag int
		counts    []int
	}
	for name, tc := range map[string]struct {
		saves []save
		want  bool
	}{
		"each step":                      {[]save{{100, 100, []int{100, 100}}, {200, 200, []int{200, 200}}}, true},
		"16 steps a step":                {[]save{{100, 1600, []int{1600, 1600}}, {200, 3200, []int{3200, 3200}}}, true},
		"16 steps a step, one save":      {[]save{{100, 1600, []int{1600, 1600}}}, true},
		"four a step, of three saves":    {[]save{{100, 400, []int{400, 400}}, {200, 800, []int{800, 800}}, {300, 1200, []int{1200, 1200}}}, true},
		"begun with an engine":           {[]save{{100, 5100, []int{5100, 5100}}, {200, 5200, []int{5200, 5200}}}, true},
		"the tag of the save before":     {[]save{{100, 100, []int{100, 100}}, {200, 100, []int{100, 100}}}, false},
		"the same, of 16 steps a step":   {[]save{{100, 1600, []int{1600, 1600}}, {200, 1600, []int{1600, 1600}}}, false},
		"a tag of a save that is gone":   {[]save{{100, 100, []int{100, 100}}, {200, 150, []int{150, 150}}}, false},
		"an older tag, and nothing else": {[]save{{200, 100, []int{100, 100}}}, false},
		"ranks that differ":              {[]save{{100, 1600, []int{1600, 1500}}}, false},
	} {
		fsys := fstest.MapFS{}
		for _, of := range tc.saves {
			dir := fmt.Sprintf("checkpoint-%d/", of.step)
			hf(t, fsys, of.step)
			delete(fsys, dir+"optimizer.pt")
			delete(fsys, dir+"rng_state.pth")
			zero(t, fsys, dir, of.tag, 0, of.counts...)
			for rank := range of.counts {
				fsys[fmt.Sprintf("%srng_state_%d.pth", dir, rank)] = torchFile(t, pair{"python", rank})
			}
		}
		r := judge(t, loader, fsys)
		require.Equal(t, tc.want, r.OK(), "%s: %s %+v", name, r.Why, r.Judged.Problems)
		require.EqualValues(t, tc.saves[len(tc.saves)-1].step, r.Epoch.V)
	}
}
