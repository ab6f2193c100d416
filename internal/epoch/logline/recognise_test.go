// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// lines are as the software prints them, with what launchers, the kernel and journals put before.
var lines = map[string]Hit{
	"WARNING: on rank 3 found iteration 1500 in the metadata while max iteration across the ranks is 2000, replacing it with max iteration.": {
		Pattern: MegatronIteration, Rank: model.Some[int64](3),
		Fields: []Field{{"iteration", "1500"}, {"max_iteration", "2000"}},
	},
	// https://github.com/intelligent-machine-learning/dlrover/issues/1233
	"[default7]:WARNING: on rank 15 found iteration 40 in the metadata while max iteration across the ranks is 4160813071, replacing it with max iteration.": {
		Pattern: MegatronIteration, Rank: model.Some[int64](15), Absurd: true,
		Fields: []Field{{"iteration", "40"}, {"max_iteration", "4160813071"}},
	},
	"[2023-01-01 10:00:00,000] [WARNING] [engine.py:2739:_get_all_zero_checkpoints] The following zero checkpoints paths are missing: ['/ckpt/global_step10/zero_pp_rank_1_mp_rank_00_optim_states.pt', '/ckpt/x']": {
		Pattern: DeepSpeedShards,
		Fields:  []Field{{"first", "/ckpt/global_step10/zero_pp_rank_1_mp_rank_00_optim_states.pt"}},
	},
	"WARNING: on rank 1 found iteration 9 in the metadata while max iteration across the ranks is 7, replacing it with max iteration.": {
		Pattern: MegatronIteration, Rank: model.Some[int64](1), Absurd: true,
		Fields: []Field{{"iteration", "9"}, {"max_iteration", "7"}},
	},
	"[WARNING] [engine.py:2990] [rank=5] The checkpoint tag name 'step100-r5' is not consistent across all ranks. Including rank unique information in checkpoint tag could cause issues when restoring with different world sizes.": {
		Pattern: DeepSpeedTag, Rank: model.Some[int64](5),
		Fields: []Field{{"tag", "step100-r5"}},
	},
	"\x1b[31mnode1:812:960 [0] init.cc:801 NCCL WARN Mismatched NCCL version detected : rank 0 version 22703 rank 8 version 22602": {
		Pattern: NCCLVersion,
		Fields:  []Field{{"rank", "0"}, {"version", "22703"}, {"other_rank", "8"}, {"other_version", "22602"}},
	},
	"h20:1:2 [0] NCCL INFO Detected mixed local Net device counts across ranks (min 1, max 2). Ignoring due to NCCL_IGNORE_NET_MISMATCH.": {
		Pattern: NCCLNetDevices,
		Fields:  []Field{{"min", "1"}, {"max", "2"}, {"ignored", "true"}},
	},
	"h20:1:2 [0] init.cc:1594 NCCL WARN Detected mixed local Net device counts across ranks (min 1, max 2). Set NCCL_IGNORE_NET_MISMATCH=1 to continue.": {
		Pattern: NCCLNetDevices,
		Fields:  []Field{{"min", "1"}, {"max", "2"}},
	},
	"[96238.399348] NVRM: API mismatch: the client has the version 390.157, but": {
		Pattern: DriverAPI,
		Fields:  []Field{{"client", "390.157"}},
	},
	"NVRM: API mismatch: the client has the version 535.247.01, but\n                  NVRM: this kernel module has the version 535.230.02.  Please\n": {
		Pattern: DriverAPI,
		Fields:  []Field{{"client", "535.247.01"}, {"kernel_module", "535.230.02"}},
	},
	"NVRM: API mismatch: the client 'nvidia-smi' (pid 1414)\nNVRM: has the version 1.0-9639, but this kernel module has\nNVRM: the version 1.0-9755.  Please": {
		Pattern: DriverAPI,
		Fields:  []Field{{"client", "1.0-9639"}, {"kernel_module", "1.0-9755"}},
	},
	"Failed to initialize NVML: Driver/library version mismatch": {Pattern: DriverLibrary},
	// https://github.com/NVIDIA/gpu-operator/issues/544
	"nv-fabricmanager[3228]: fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with driver version 530.41.03. Please update with matching NVIDIA driver package.": {
		Pattern: FabricManager,
		Fields:  []Field{{"fabric_manager", "530.30.02"}, {"driver", "530.41.03"}},
	},
}

func TestRecognise(t *testing.T) {
	for line, want := range lines {
		got, ok := Recognise(line)
		require.True(t, ok, line)
		assert.Equal(t, want, got, line)
		_, ok = Recognise(strings.Repeat("x", maxLine) + line)
		assert.False(t, ok, "behind what is looked at")
	}
}

// What is nearly such a line is none.
func TestOtherLines(t *testing.T) {
	for _, line := range []string{
		"",
		"found iteration 1500 in the metadata while max iteration across the ranks is 2000, replacing it with max iteration.",
		"on rank x found iteration 1500 in the metadata while max iteration across the ranks is 2000, replacing it with max iteration.",
		"on rank 3 found iteration 15k in the metadata while max iteration across the ranks is 2000, replacing it with max iteration.",
		"on rank 3 found iteration 1500 in the metadata while max iteration across the ranks is 2000.",
		"on rank 99999999999999999999 found iteration 1 in the metadata while max iteration across the ranks is 2, replacing it with max iteration.",
		"on rank {} found iteration {} in the metadata while max iteration across the ranks is {}, replacing it with max iteration.", // source code
		"The following zero checkpoints paths are missing: []",
		`f"The following zero checkpoints paths are missing: {invalid_zero_ckpt_paths}"`,
		"x' is not consistent across all ranks. Including rank unique information in checkpoint tag could",
		"Mismatched NCCL version detected : rank %d version %d rank %d version %d",
		"Mismatched NCCL version detected : rank 0 version 22703",
		"Detected mixed local Net device counts across ranks (min %d, max %d)",
		"Detected mixed local Net device counts across ranks (min 1, max",
		"NVRM: API mismatch: the client is old",
		"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14",
		"fabric manager NVIDIA GPU driver interface version 530.30.02",
		"fabric manager NVIDIA GPU driver interface version x don't match with driver version y",
		"driver/library version mismatch",
		"step 100: loss 2.31",
	} {
		_, ok := Recognise(line)
		assert.False(t, ok, line)
	}
}

func FuzzRecognise(f *testing.F) {
	for line := range lines {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		h, ok := Recognise(line)
		if !ok {
			require.Empty(t, h)
			return
		}
		for _, field := range h.Fields { // nothing is made up
			if field.Name != "ignored" {
				require.Contains(t, line, field.Value)
			}
		}
	})
}

// BenchmarkRecognise: nearly all lines say nothing.
func BenchmarkRecognise(b *testing.B) {
	line := "2026-11-24 10:00:00,123 [rank3] INFO train.py:812 step 48213 | loss 2.3141 | grad norm 0.98 | 41.2 TFLOPs | 1.83 s"
	long := strings.Repeat(line, 100)
	for name, text := range map[string]string{"115 bytes": line, "8 KiB": long} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := Recognise(text); ok {
					b.Fatal("recognised")
				}
			}
		})
	}
}
