// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

const copies = 25 // with times at random, of each kind

// shuffle gives all files times at random, as a download by many workers does.
func shuffle(fsys fstest.MapFS, seed uint64, span time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for _, name := range below(fsys, ".") {
		fsys[name].ModTime = began.Add(time.Duration(rng.Int64N(span.Milliseconds())) * time.Millisecond)
	}
}

// ranksTimes is one save of torchtitan by many ranks.
func ranksTimes(ranks int) func(*testing.T) fstest.MapFS {
	return func(*testing.T) fstest.MapFS {
		fsys := fstest.MapFS{}
		names := []string{"optimizer.state.w.exp_avg", "train_state.step"}
		for r := range ranks {
			names = append(names, fmt.Sprintf("layers.%d.w", r))
		}
		for name, data := range ckptsim.DCPOf(200, ranks, names...) {
			fsys["step-200/"+name] = &fstest.MapFile{Data: data}
		}
		for i, name := range below(fsys, "step-200") {
			fsys[name].ModTime = began.Add(time.Duration(i) * 100 * time.Millisecond)
		}
		fsys["step-200/.metadata"].ModTime = began.Add(time.Minute)
		return fsys
	}
}

func hfOne(t *testing.T) fstest.MapFS {
	t.Helper()
	fsys := hfTimes(t)
	for name := range fsys {
		if strings.HasPrefix(name, "checkpoint-100/") {
			delete(fsys, name)
		}
	}
	return fsys
}

// Whole copies in a random order of times are safe, but for a few whose times look like two attempts. Those ask
// for --ignore-times.
func TestTimes_RandomCopies(t *testing.T) {
	for name, tc := range map[string]struct {
		make    func(*testing.T) fstest.MapFS
		refused int // at most, of all copies of one span
	}{
		"trainer":                   {hfTimes, 1},
		"trainer, one save":         {hfOne, 1},
		"torchtitan":                {titanTimes, 2},
		"torchtitan, eight ranks":   {ranksTimes(8), 2},
		"megatron":                  {megatronTimes, 1},
		"torchtitan, of three ones": {ranksTimes(2), 14}, // three files are in most orders as of two attempts
	} {
		for _, span := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
			refused := 0
			fsys := tc.make(t)
			for seed := range uint64(copies) {
				shuffle(fsys, seed, span)
				r := judge(t, loader, fsys)
				if r.OK() {
					continue
				}
				refused++
				require.Contains(t, r.Judged.Problems[0].What, "--ignore-times")
				root := ckpt.Read(t.Context(), fsys, ckpt.Options{IgnoreTimes: true})
				require.True(t, preflight.Judge([]preflight.Place{{Name: "x", Root: root}}, loader).OK(), "%s with --ignore-times", name)
			}
			require.LessOrEqual(t, refused, tc.refused, "%s within %v", name, span)
		}
	}
}

// A single save by few ranks whose times are in whole seconds, as copies keep them, is hardly ever taken for two
// attempts: three files or four are in most orders.
func TestTimes_RandomCopiesOfOneSaveInSeconds(t *testing.T) {
	const seeds = 100
	for _, ranks := range []int{2, 3, 4, 6} {
		for _, span := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
			refused := 0
			fsys := ranksTimes(ranks)(t)
			for seed := range uint64(seeds) {
				shuffle(fsys, seed, span)
				inSeconds(fsys, time.Second)
				if !judge(t, loader, fsys).OK() {
					refused++
				}
			}
			require.LessOrEqual(t, refused, 1, "%d ranks within %v", ranks, span)
		}
	}
}

// An attempt that was cut off since stays found, in what was written or copied before.
func TestTimes_SecondAttempts(t *testing.T) {
	const dir, step = "checkpoint-200/", "step-200/"
	trainer := []string{dir + "config.json", dir + "pytorch_model.bin", dir + "training_args.bin", dir + "optimizer.pt", dir + "scheduler.pt", dir + "rng_state.pth"}
	attempt := func(fsys fstest.MapFS, at, apart time.Duration, files ...string) {
		order(fsys, began.Add(at), apart, files...)
	}
	for name, tc := range map[string]struct {
		make   func(*testing.T) fstest.MapFS
		change func(f fstest.MapFS, seed uint64)
	}{
		"trainer, a copy overwritten": {hfTimes, func(f fstest.MapFS, seed uint64) {
			shuffle(f, seed, time.Minute)
			attempt(f, time.Hour, time.Second, trainer[:1+seed%6]...)
		}},
		"trainer, one save, a copy": {hfOne, func(f fstest.MapFS, seed uint64) {
			shuffle(f, seed, 10*time.Minute)
			attempt(f, 3*time.Hour, time.Second, trainer[:1+seed%6]...)
		}},
		"trainer, slow files": {hfOne, func(f fstest.MapFS, seed uint64) {
			attempt(f, 0, time.Minute, append(trainer, dir+"trainer_state.json")...)
			attempt(f, 9*time.Minute, time.Minute, trainer[:1+seed%6]...)
		}},
		"trainer, killed twice": {hfTimes, func(f fstest.MapFS, seed uint64) {
			attempt(f, time.Hour, time.Second, trainer[:2+seed%5]...)
			attempt(f, time.Hour+5*time.Minute, time.Second, trainer[:1+seed%2]...)
		}},
		"torchtitan, a copy overwritten": {titanTimes, func(f fstest.MapFS, seed uint64) {
			shuffle(f, seed, time.Minute)
			attempt(f, time.Hour, time.Second, fmt.Sprintf("%s__%d_0.distcp", step, seed%2))
		}},
		"torchtitan, eight ranks": {ranksTimes(8), func(f fstest.MapFS, seed uint64) {
			for r := range 1 + seed%8 {
				attempt(f, 5*time.Minute+time.Duration(r*5%8)*300*time.Millisecond, time.Second, fmt.Sprintf("%s__%d_0.distcp", step, r))
			}
		}},
		"torchtitan, killed twice": {ranksTimes(8), func(f fstest.MapFS, seed uint64) {
			attempt(f, 5*time.Minute, time.Second, step+"__1_0.distcp", step+"__2_0.distcp")
			attempt(f, 12*time.Minute, time.Second, fmt.Sprintf("%s__%d_0.distcp", step, 3+seed%5))
		}},
		"megatron, a copy overwritten": {megatronTimes, func(f fstest.MapFS, seed uint64) {
			shuffle(f, seed, time.Minute)
			f[tracker].ModTime = began.Add(time.Minute)
			attempt(f, time.Hour, time.Second, rank200)
		}},
		"another save since": {titanTimes, func(f fstest.MapFS, seed uint64) {
			for name := range f {
				if path.Dir(name) == "step-100" {
					f[name].ModTime = f[name].ModTime.Add(20 * time.Minute)
				}
			}
			attempt(f, 30*time.Minute, time.Second, fmt.Sprintf("%s__%d_0.distcp", step, seed%2))
		}},
	} {
		made := tc.make(t)
		for seed := range uint64(copies) {
			fsys := fstest.MapFS{}
			for file, of := range made {
				again := *of
				fsys[file] = &again
			}
			tc.change(fsys, seed)
			r := judge(t, loader, fsys)
			require.False(t, r.OK(), "%s, seed %d", name, seed)
			require.Equal(t, ckpt.CheckOrder, r.Judged.Problems[0].Check, name)
		}
	}
}

// A save of weights alone is refused whatever its times are, and that it has no more is the surer reason.
func TestTimes_WeightsAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		make   func(t *testing.T, f fstest.MapFS)
		late   string
		newest int64 // 0 for none
	}{
		"torchtitan":           {func(_ *testing.T, f fstest.MapFS) { titan(f, 100, true); titan(f, 200, false) }, titan200, 100},
		"torchtitan, one save": {func(_ *testing.T, f fstest.MapFS) { titan(f, 200, false) }, titan200, 0},
		"trainer":              {func(t *testing.T, f fstest.MapFS) { t.Helper(); hf(t, f, 100); hfModel(t, f, 200) }, "checkpoint-200/model.safetensors", 100},
		"trainer, each":        {func(t *testing.T, f fstest.MapFS) { t.Helper(); hfModel(t, f, 100); hfModel(t, f, 200) }, "checkpoint-200/model.safetensors", 0},
		"megatron, the last":   {func(t *testing.T, f fstest.MapFS) { t.Helper(); megatronRanks(t, f, 200, nil, rngPair) }, rank200, 0},
		"megatron, after a whole": {func(t *testing.T, f fstest.MapFS) {
			t.Helper()
			megatronRanks(t, f, 100, nil, optimizerPair, rngPair)
			megatronRanks(t, f, 200, nil, rngPair)
		}, rank200, 100},
	} {
		fsys := fstest.MapFS{}
		tc.make(t, fsys)
		for _, dir := range []string{"100", "200"} {
			for _, file := range below(fsys, ".") {
				if strings.HasSuffix(path.Dir(file), dir) || strings.Contains(file, dir+"/mp_rank") {
					fsys[file].ModTime = began.Add(map[string]time.Duration{"100": 0, "200": 20 * time.Minute}[dir])
				}
			}
		}
		marker := began.Add(20*time.Minute + time.Second)
		for _, file := range []string{"step-200/.metadata", "checkpoint-200/trainer_state.json", tracker} {
			if fsys[file] != nil {
				fsys[file].ModTime = marker
			}
		}
		fsys[tc.late].ModTime = marker.Add(5 * time.Minute)
		r := judge(t, loader, fsys)
		require.Equal(t, preflight.WeightsOnly, r.Verdict, "%s: %s", name, r.Why)
		require.Contains(t, r.Why, "complete, weights only: cannot resume training", name)
		require.Equal(t, tc.newest, r.Frontier.V, name)
		require.NotEmpty(t, r.Judged.Problems, "%s: its times are named too", name)
		root := ckpt.Read(t.Context(), fsys, ckpt.Options{})
		r = preflight.JudgeAccepting([]preflight.Place{{Name: "x", Root: root}}, loader, preflight.Accept{WeightsOnly: true})
		require.Equal(t, epoch.Converging, r.Verdict, "%s, accepted: it may be of two attempts", name)
	}
}
