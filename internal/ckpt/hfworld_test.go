// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// The Trainer writes the random states of one process under a name of its own, which shows a wrong world size.
func TestHF_WorldSizeOfOneProcess(t *testing.T) {
	const one = "checkpoint-400/rng_state.pth"
	for name, tc := range map[string]struct {
		world  int64
		change func(fstest.MapFS)
		text   string // "" where it is whole
	}{
		"not given":            {0, func(fstest.MapFS) {}, ""},
		"one":                  {1, func(fstest.MapFS) {}, ""},
		"four":                 {4, func(fstest.MapFS) {}, "got the random states of a job of one process; want those of each of 4 ranks, which --world-size says: leave it out"},
		"two, of a torn file":  {2, put(one, document("PK")), "each of 2 ranks"},
		"four, and none there": {4, without(one), "got nothing of rank 3; want it of 4 ranks"},
	} {
		f := saveOfTrainer(t)
		tc.change(f)
		r, ok := safe(t, f, ckpt.Options{WorldSize: tc.world})
		require.Equal(t, tc.text == "", ok, "%s: %s", name, r.Why)
		require.Contains(t, told(r), tc.text, name)
	}
}
