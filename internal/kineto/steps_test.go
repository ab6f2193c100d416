// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func stepsOf(t *Trace) map[int64][2]int64 {
	out := map[int64][2]int64{}
	for _, op := range ofKind(t, model.KindStep) {
		out[op.Step.V] = [2]int64{op.Start / 1000, op.End / 1000}
	}
	return out
}

func TestSteps(t *testing.T) {
	tests := []struct {
		name   string
		events []string
		want   map[int64][2]int64
		step   model.Optional[int64] // of the kernel
	}{
		{"the step ends with its last operation", []string{x("user_annotation", "ProfilerStep#3", 1, 100, 50, ""), kernel("k", 1, 149, "")}, map[int64][2]int64{3: {100, 152}}, model.Some(int64(3))},
		{"enqueued in one step, run in the next", []string{
			x("user_annotation", "ProfilerStep#3", 1, 100, 50, ""), x("user_annotation", "ProfilerStep#4", 1, 151, 50, ""), kernel("k", 1, 152, ""),
		}, map[int64][2]int64{3: {100, 155}, 4: {151, 201}}, model.Some(int64(3))},
		{"outside every step", []string{x("user_annotation", "ProfilerStep#3", 1, 100, 50, ""), kernel("k", 1, 300, "")}, map[int64][2]int64{3: {100, 150}}, model.Optional[int64]{}},
		{"ProfilerStep beats annotations", []string{
			x("user_annotation", "ProfilerStep#3", 1, 100, 50, ""), x("user_annotation", "step 9", 1, 110, 10, ""), kernel("k", 1, 120, ""),
		}, map[int64][2]int64{3: {100, 150}}, model.Some(int64(3))},
		{"annotations", []string{
			x("user_annotation", "train_step_7", 1, 100, 50, ""), x("user_annotation", "train_step_8", 1, 160, 50, ""), kernel("k", 1, 170, ""),
		}, map[int64][2]int64{7: {100, 150}, 8: {160, 210}}, model.Some(int64(8))},
		{"the longest series of annotations", []string{
			x("user_annotation", "step 1", 1, 100, 200, ""), x("user_annotation", "Iteration: 7", 1, 100, 50, ""),
			x("user_annotation", "iteration 8", 1, 160, 50, ""), x("user_annotation", "iteration 9", 1, 220, 50, ""), kernel("k", 1, 170, ""),
		}, map[int64][2]int64{8: {160, 210}, 9: {220, 270}}, model.Some(int64(8))},
		{"no marks: one step", []string{x("user_annotation", "forward", 1, 100, 50, ""), kernel("k", 1, 200, "")}, map[int64][2]int64{0: {100, 203}}, model.Some(int64(0))},
		{"repeated number", []string{
			x("user_annotation", "ProfilerStep#3", 1, 100, 50, ""), x("user_annotation", "ProfilerStep#3", 1, 160, 50, ""), kernel("k", 1, 120, ""),
		}, map[int64][2]int64{3: {100, 150}}, model.Some(int64(3))},
		{"nothing", nil, map[int64][2]int64{}, model.Optional[int64]{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := parseText(t, "x.json", trace("", tt.events...))
			assert.Equal(t, tt.want, stepsOf(tr))
			if ops := ofKind(tr, model.KindCompute); len(ops) > 0 {
				assert.Equal(t, tt.step, ops[0].Step)
			}
			assert.Equal(t, tt.name == "repeated number", len(tr.Problems()) == 1)
		})
	}
}

func TestStepPattern(t *testing.T) {
	o := DefaultOptions()
	o.StepPattern = regexp.MustCompile(`^batch=(\d+)`)
	text := trace("", x("user_annotation", "batch=5 lr=1", 1, 10, 5, ""), x("user_annotation", "batch=6 lr=1", 1, 20, 5, ""))
	tr, err := Parse(t.Context(), strings.NewReader(text), "x", o)
	require.NoError(t, err)
	assert.Equal(t, map[int64][2]int64{5: {10, 15}, 6: {20, 25}}, stepsOf(tr))
}

func TestOpsStopEarly(t *testing.T) {
	tr := parseText(t, "x.json", trace("", kernel("k", 1, 120, ""), kernel("k", 2, 130, "")))
	n := 0
	for range tr.Ops() {
		n++
		break
	}
	assert.Equal(t, 1, n)
	var seqs []int64
	for _, op := range ofKind(tr, model.KindCompute) {
		seqs = append(seqs, op.Seq)
	}
	assert.Equal(t, []int64{0, 1}, seqs, "iterating again counts again")
}
