// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// evaluated is a save of the Trainer that has evaluated at some steps, with what a scheduler that waits for a plateau
// counts.
type evaluated struct {
	step  int
	at    []int
	count int
}

func evaluatedSaves(t *testing.T, key string, all ...evaluated) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{}
	for _, s := range all {
		dir := fmt.Sprintf("checkpoint-%d/", s.step)
		for name, file := range saveOfTrainer(t) {
			f[strings.Replace(name, "checkpoint-400/", dir, 1)] = file
		}
		var logs []string
		for _, step := range s.at {
			logs = append(logs, fmt.Sprintf(`{"step": %d, "loss": 3.5}`, step), fmt.Sprintf(`{"step": %d, "eval_loss": 2.5, %q: 0.5}`, step, key))
		}
		f[dir+"trainer_state.json"] = document(fmt.Sprintf(`{"global_step": %d, "epoch": 0.25, "log_history": [%s]}`, s.step, strings.Join(logs, ",")))
		f[dir+"optimizer.pt"] = optimizerAt(t, s.step)
		f[dir+"scheduler.pt"] = torchSaved(t, table{"last_epoch": s.count, "num_bad_epochs": 0, "best": 2})
	}
	return f
}

// A scheduler that waits for a plateau is stepped by each evaluation, which the Trainer logs.
func TestPlateau_OfAnOlderSave(t *testing.T) {
	const key = "eval_runtime"
	for name, tc := range map[string]struct {
		key   string
		saves []evaluated
		want  bool
	}{
		"each save evaluated":             {key, []evaluated{{2, []int{2}, 1}, {4, []int{2, 4}, 2}}, true},
		"of the save before":              {key, []evaluated{{2, []int{2}, 1}, {4, []int{2, 4}, 1}}, false},
		"of the first of three":           {key, []evaluated{{2, []int{2}, 1}, {4, []int{2, 4}, 2}, {6, []int{2, 4, 6}, 1}}, false},
		"several evaluations to a save":   {key, []evaluated{{10, []int{5, 10}, 2}, {20, []int{5, 10, 15, 20}, 2}}, false},
		"started anew":                    {key, []evaluated{{10, []int{5, 10}, 2}, {20, []int{5, 10, 15, 20}, 0}}, false},
		"no evaluation since":             {key, []evaluated{{2, []int{2}, 1}, {4, []int{2}, 1}}, true},
		"evaluated twice at a step":       {key, []evaluated{{2, []int{2, 2}, 1}, {4, []int{2, 2, 4, 4}, 2}}, true},
		"evaluated before the start, too": {key, []evaluated{{2, []int{0, 2}, 1}, {4, []int{0, 2, 4}, 2}}, true},
		"begun without its count":         {key, []evaluated{{12, []int{2, 12}, 1}, {14, []int{2, 12, 14}, 2}}, true},
		"counts otherwise in all saves":   {key, []evaluated{{2, []int{2}, 0}, {4, []int{2, 4}, 0}}, true},
		"of sets with names":              {"eval_code_runtime", []evaluated{{2, []int{2}, 1}, {4, []int{2, 4}, 1}}, true},
		"the only save":                   {key, []evaluated{{4, []int{2, 4}, 1}}, true},
	} {
		r, ok := safe(t, evaluatedSaves(t, tc.key, tc.saves...), ckpt.Options{})
		require.Equal(t, tc.want, ok, "%s: %s\n%s", name, r.Why, told(r))
		if !tc.want {
			require.Contains(t, r.Why, "scheduler.pt, which is tentative", name)
			require.Contains(t, told(r), "evaluations", name)
		}
	}
	for _, history := range []string{`"none"`, `[1, {"step": "x", "eval_runtime": 1}]`, `{"step": 2}`, `null`} {
		f := evaluatedSaves(t, key, evaluated{2, []int{2}, 1}, evaluated{4, []int{2, 4}, 2})
		f["checkpoint-4/trainer_state.json"] = document(`{"global_step": 4, "log_history": ` + history + `}`)
		r, ok := safe(t, f, ckpt.Options{})
		require.True(t, ok, "%s: %s\n%s", history, r.Why, told(r))
	}
}
