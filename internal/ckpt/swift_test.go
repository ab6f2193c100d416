// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// swiftSaves is a folder of ms-swift's Megatron trainers: each save of Megatron in a checkpoint-N.
func swiftSaves(t *testing.T) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{}
	for name, file := range inMemory(t, saves(t, "megatron, torch_dist", 100, 200)).(fstest.MapFS) {
		for _, step := range []string{"100", "200"} {
			if strings.HasPrefix(name, "iter_0000"+step) {
				f["checkpoint-"+step+"/"+name] = file
			}
		}
	}
	for _, step := range []string{"100", "200"} {
		f["checkpoint-"+step+"/latest_checkpointed_iteration.txt"] = document(step)
		f["checkpoint-"+step+"/args.json"] = document("{}")
	}
	return f
}

func TestSwift(t *testing.T) {
	const iter = "checkpoint-200/iter_0000200/"
	tracker := func(n int) string { return fmt.Sprintf("checkpoint-%d/latest_checkpointed_iteration.txt", n) }
	changes(t, swiftSaves, ckpt.FormatSwift, 200, map[string]change{
		"a shard gone":  {do: without(iter + "__1_0.distcp"), epoch: 200, newest: at(100), text: "rank 1 in iter_0000200"},
		"a shard torn":  {do: cut(iter + "__0_0.distcp"), epoch: 200, newest: at(100), text: "want at least"},
		"no .metadata":  {do: without(iter + ".metadata"), epoch: 200, newest: at(100), text: ".metadata"},
		"no iteration":  {do: without(iter), epoch: 200, newest: at(100), text: "got no"},
		"nothing in it": {do: all(without("checkpoint-200/"), put("checkpoint-200/args.json", document("{}"))), epoch: 200, newest: at(100), text: "got no folder iter_N"},
		"another iteration": {do: func(f fstest.MapFS) {
			for name, file := range below(f, iter) {
				f["checkpoint-200/iter_0000300/"+name] = file
			}
			without(iter)(f)
		}, epoch: 200, newest: at(100), text: "got no iteration 200"},
		"no tracker in one":   {do: without(tracker(200)), epoch: 200, newest: at(200), text: "got no tracker"},
		"no tracker anywhere": {do: without(tracker(100), tracker(200)), want: true, epoch: 200, newest: at(200)},
		"tracker of another":  {do: put(tracker(200), document("100")), epoch: 200, newest: at(200), text: "which Megatron loads"},
		"weights beside":      {do: put("checkpoint-200/model.safetensors", weightsOf("{}", "w")), want: true, epoch: 200, newest: at(200)},
	})
	r, ok := safe(t, below(swiftSaves(t), "checkpoint-200/"), ckpt.Options{})
	require.True(t, ok, r.Why)
	require.Equal(t, ckpt.FormatMegatronDist, r.Judged.Format)
}

// What is not read is named, with what would decide, and never confirmed.
func TestDeclinedLayouts(t *testing.T) {
	for name, tc := range map[string]struct {
		fsys   fstest.MapFS
		format ckpt.Format
		epoch  int64
		text   string
	}{
		"Composer":          {fstest.MapFS{"ep0-ba50-rank0.pt": document("x"), "ep1-ba100-rank0.pt": document("x"), "ep1-ba100-rank1.pt": document("x"), "latest-rank0.pt": document("x")}, ckpt.FormatComposer, 100, "it is a save of Composer, which is not read"},
		"Composer, sharded": {fstest.MapFS{"ep0-ba50/.metadata": document("x"), "ep0-ba50/__0_0.distcp": document("x")}, ckpt.FormatComposer, 50, "check that each rank has its file"},
		"Automodel":         {fstest.MapFS{"epoch_0_step_9/model/.metadata": document("x"), "epoch_1_step_19/optim/.metadata": document("x")}, ckpt.FormatAutomodel, 19, "it is a save of NeMo Automodel"},
		"a universal copy":  {fstest.MapFS{"global_step7_universal/zero/w/fp32.pt": document("x"), "latest_universal": document("global_step7_universal")}, ckpt.FormatDeepSpeed, 7, "universal form, which is not read"},
		"beyond 64 bits":    {fstest.MapFS{"ep0-ba99999999999999999999-rank0.pt": document("x"), "ep0-ba5-rank0.pt": document("x")}, ckpt.FormatComposer, 5, "Composer"},
	} {
		t.Run(name, func(t *testing.T) {
			r, ok := safe(t, tc.fsys, ckpt.Options{})
			require.False(t, ok)
			require.Equal(t, epoch.Unknown, r.Verdict)
			require.Contains(t, r.Why, tc.text)
			require.Equal(t, tc.epoch, r.Epoch.V)
			require.Equal(t, tc.format, r.Judged.Format)
			require.False(t, r.Frontier.OK)
		})
	}
	for _, other := range []fstest.MapFS{
		{"epoch_1_step_2/x": document("x")}, {"epoch_1_step_2": document("x")}, {"global_step7_universal/x": document("x")}, {"ep-ba.pt": document("x")},
	} {
		root := ckpt.Read(t.Context(), other, ckpt.Options{})
		require.True(t, root.Empty, "%v", other)
	}
}
