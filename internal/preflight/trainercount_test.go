// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// The only save of a folder: what counts in it, and what the Trainer says of its job, have to agree.
func TestCountersOfTheTrainer_OnlySave(t *testing.T) {
	const every100 = `"epoch": 0.5, "save_steps": 100`
	one, two := pair{"gradient_accumulation_steps", 1}, pair{"gradient_accumulation_steps", 2}
	type scaler struct{ scale, interval int }
	for name, tc := range map[string]struct {
		save   counted
		state  string
		args   []pair
		fused  bool
		scaler *scaler
		doubt  string
	}{
		"each step":                               {counted{200, 200, 200}, every100, []pair{one}, false, nil, ""},
		"a scheduler by epochs":                   {counted{200, 200, 2}, `"epoch": 2.0, "save_steps": 100`, []pair{one}, false, nil, ""},
		"a scheduler by many epochs":              {counted{200, 200, 30}, `"epoch": 29.5, "save_steps": 10`, []pair{one}, false, nil, ""},
		"a scheduler by epochs of two steps":      {counted{4, 4, 2}, `"epoch": 2.0, "save_steps": 2`, []pair{one}, false, nil, ""},
		"a scheduler of the save before":          {counted{200, 200, 100}, every100, []pair{one}, false, nil, "scheduler.pt"},
		"the same, of tiny steps":                 {counted{4, 4, 2}, `"epoch": 0.25, "save_steps": 2`, []pair{one}, false, nil, "scheduler.pt"},
		"the same, of a much older save":          {counted{1000, 1000, 100}, every100, []pair{one}, false, nil, "scheduler.pt"},
		"the same, without more":                  {counted{200, 200, 120}, `"epoch": null`, nil, false, nil, "scheduler.pt"},
		"the same, with a scaler":                 {counted{200, 200, 100}, every100, []pair{one, {"fp16", true}}, false, &scaler{65536, 2000}, "scheduler.pt"},
		"both of the save before":                 {counted{200, 100, 100}, every100, []pair{one}, false, nil, "optimizer.pt"},
		"both, of tiny steps":                     {counted{4, 2, 2}, `"epoch": 0.25, "save_steps": 2`, []pair{one}, false, nil, "optimizer.pt"},
		"both, of ten saves":                      {counted{1000, 900, 900}, every100, []pair{one}, false, nil, "optimizer.pt"},
		"both, of gradients accumulated":          {counted{200, 150, 150}, every100, []pair{two}, false, nil, "optimizer.pt"},
		"both, arguments unknown":                 {counted{200, 100, 100}, every100, nil, false, nil, "optimizer.pt"},
		"gradients accumulated":                   {counted{200, 100, 100}, every100, []pair{two}, false, nil, ""},
		"gradients accumulated, arguments lost":   {counted{200, 50, 50}, every100, nil, false, nil, ""},
		"steps skipped, without a scaler":         {counted{200, 150, 150}, every100, []pair{one, {"fp16", true}}, false, nil, ""},
		"few steps skipped otherwise":             {counted{200, 197, 197}, every100, []pair{one}, false, nil, ""},
		"steps skipped":                           {counted{200, 150, 150}, every100, []pair{one, {"fp16", true}}, false, &scaler{1, 2000}, ""},
		"16 optimizer steps":                      {counted{200, 3200, 200}, every100, []pair{one}, false, nil, ""},
		"begun with an optimizer":                 {counted{200, 5200, 200}, every100, []pair{one}, false, nil, ""},
		"the scheduler counts what was skipped":   {counted{200, 100, 200}, every100, []pair{one, {"fp16", true}}, false, &scaler{4096, 2000}, "optimizer.pt"},
		"the same, of some steps":                 {counted{200, 197, 200}, every100, []pair{one, {"fp16", true}}, false, &scaler{8192, 2000}, "optimizer.pt"},
		"a fused optimizer skipped by itself":     {counted{200, 197, 200}, every100, []pair{one, {"fp16", true}}, true, &scaler{8192, 2000}, ""},
		"the same, more than the scale says":      {counted{200, 150, 200}, every100, []pair{one, {"fp16", true}}, true, &scaler{8192, 2000}, "optimizer.pt"},
		"the same, of a scale that grows quickly": {counted{200, 180, 200}, every100, []pair{one, {"fp16", true}}, true, &scaler{8192, 10}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := trainer(t, false, tc.save)
			dir := fmt.Sprintf("checkpoint-%d/", tc.save.step)
			fsys[dir+"trainer_state.json"] = text(fmt.Sprintf(`{"global_step": %d, %s}`, tc.save.step, tc.state))
			fsys[dir+"training_args.bin"] = torchFile(t, append(tc.args, pair{"seed", 42})...)
			fsys[dir+"optimizer.pt"] = torchFile(t, pair{"state", []pair{{"0", []pair{{"step", tc.save.optimizer}}}}},
				pair{"param_groups", []any{[]pair{{"lr", 1}, {"fused", tc.fused}}}})
			if tc.scaler != nil {
				fsys[dir+"scaler.pt"] = torchFile(t, pair{"scale", tc.scaler.scale}, pair{"growth_interval", tc.scaler.interval})
			}
			r := judge(t, loader, fsys)
			if tc.doubt == "" {
				require.True(t, r.OK(), "%s %+v", r.Why, r.Judged.Problems)
				return
			}
			require.False(t, r.OK())
			require.Equal(t, epoch.Converging, r.Verdict)
			require.Contains(t, r.Why, tc.doubt+", which is tentative")
			require.Contains(t, r.Judged.Problems[0].What, fmt.Sprintf("want %d", tc.save.step))
		})
	}
}
