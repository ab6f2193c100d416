// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"path"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// inSeconds leaves times no fraction, as file systems that keep whole seconds, or every other one, do.
func inSeconds(fsys fstest.MapFS, resolution time.Duration) {
	for _, file := range fsys {
		file.ModTime = file.ModTime.Truncate(resolution)
	}
}

// deepspeedTimes are two tags of DeepSpeed, and the pointer that the last has set.
func deepspeedTimes(t *testing.T) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	for i, step := range []int{100, 200} {
		dir := fmt.Sprintf("global_step%d/", step)
		fsys[dir+"mp_rank_00_model_states.pt"] = torchFile(t, pair{"dp_world_size", 2}, pair{"mp_world_size", 1}, pair{"global_steps", step}, pair{"skipped_steps", 0})
		files := []string{dir + "mp_rank_00_model_states.pt"}
		for r := range 2 {
			files = append(files, fmt.Sprintf("%szero_pp_rank_%d_mp_rank_00_optim_states.pt", dir, r))
			fsys[files[1+r]] = torchFile(t, pair{"optimizer_state_dict", 1})
		}
		fsys["latest"] = text(path.Dir(dir + "x"))
		order(fsys, began.Add(time.Duration(i)*10*time.Minute), 700*time.Millisecond, append(files, "latest")...)
	}
	return fsys
}

func titanOne(t *testing.T) fstest.MapFS {
	t.Helper()
	fsys := titanTimes(t)
	for _, name := range below(fsys, "step-100") {
		delete(fsys, name)
	}
	return fsys
}

// A file that comes minutes or hours after all others of its save, which lie within seconds, was overwritten: its
// time is that of no copy, whatever the resolution of times and whatever became of the save before.
func TestTimes_Overwritten(t *testing.T) {
	kinds := map[string]struct {
		make         func(*testing.T) fstest.MapFS
		last, before string // files of the last save and the one before it
	}{
		"torchtitan":              {titanTimes, titan200, titan100},
		"torchtitan, eight ranks": {ranksTimes(8), "step-200/__7_0.distcp", ""},
		"torchtitan, one save":    {titanOne, titan200, ""},
		"megatron":                {megatronTimes, rank200, ""},
		"trainer, optimizer":      {hfTimes, "checkpoint-200/optimizer.pt", "checkpoint-100/optimizer.pt"},
		"trainer, model":          {hfTimes, model200, "checkpoint-100/pytorch_model.bin"},
		"trainer, arguments":      {hfOne, "checkpoint-200/training_args.bin", ""},
		"trainer, random state":   {hfTimes, "checkpoint-200/rng_state.pth", ""},
	}
	for name, kind := range kinds {
		for _, resolution := range []time.Duration{1, time.Second, 2 * time.Second} {
			whole := kind.make(t)
			inSeconds(whole, resolution)
			require.True(t, judge(t, loader, whole).OK(), "%s in %v, as written", name, resolution)
			for _, by := range []time.Duration{4 * time.Minute, 83 * time.Minute, 31 * time.Hour} {
				for _, before := range []time.Duration{0, 21 * time.Minute, 83 * time.Minute} {
					if before > 0 && kind.before == "" {
						continue
					}
					fsys := kind.make(t)
					later(fsys, by, kind.last)
					if before > 0 {
						later(fsys, before, kind.before)
					}
					inSeconds(fsys, resolution)
					r := judge(t, loader, fsys)
					require.False(t, r.OK(), "%s in %v, late by %v, the save before by %v", name, resolution, by, before)
					require.Equal(t, ckpt.CheckOrder, r.Judged.Problems[0].Check, name)
					require.Equal(t, kind.last, r.Judged.Problems[0].File, name)
					root := ckpt.Read(t.Context(), fsys, ckpt.Options{IgnoreTimes: true})
					require.True(t, preflight.Judge([]preflight.Place{{Name: "x", Root: root}}, model.Optional[int64]{}).OK(), "%s with --ignore-times", name)
				}
			}
		}
	}
}

// Where no file is written last, one that comes later than any attempt lives was overwritten all the same. Ranks that
// wait for a slow disk are of one attempt, and a model may be made of a save at any time.
func TestTimes_OverwrittenWithoutAMarker(t *testing.T) {
	const dir = "global_step200/"
	for name, tc := range map[string]struct {
		change func(fstest.MapFS)
		want   bool
	}{
		"as written":         {func(fstest.MapFS) {}, true},
		"a slow disk":        {func(f fstest.MapFS) { later(f, 9*time.Minute, dir+"zero_pp_rank_1_mp_rank_00_optim_states.pt") }, true},
		"a rank":             {func(f fstest.MapFS) { later(f, 83*time.Minute, dir+"zero_pp_rank_1_mp_rank_00_optim_states.pt") }, false},
		"the model":          {func(f fstest.MapFS) { later(f, 83*time.Minute, dir+"mp_rank_00_model_states.pt") }, false},
		"an older file kept": {func(f fstest.MapFS) { later(f, -31*time.Hour, dir+"mp_rank_00_model_states.pt") }, true},
		"a rank of each save": {func(f fstest.MapFS) {
			later(f, 45*time.Minute, "global_step100/zero_pp_rank_1_mp_rank_00_optim_states.pt")
			later(f, 83*time.Minute, dir+"zero_pp_rank_1_mp_rank_00_optim_states.pt")
		}, false},
		"a copy of hours": {func(f fstest.MapFS) {
			for i, name := range below(f, ".") {
				f[name].ModTime = began.Add(time.Duration(i*5%7) * time.Hour)
			}
		}, true},
	} {
		for _, resolution := range []time.Duration{1, time.Second, 2 * time.Second} {
			fsys := deepspeedTimes(t)
			tc.change(fsys)
			inSeconds(fsys, resolution)
			r := judge(t, loader, fsys)
			require.Equal(t, tc.want, r.OK(), "%s in %v: %s", name, resolution, r.Why)
			if !tc.want {
				require.Contains(t, r.Judged.Problems[0].What, "more than 30 minutes newer")
			}
			root := ckpt.Read(t.Context(), fsys, ckpt.Options{IgnoreTimes: true})
			require.True(t, preflight.Judge([]preflight.Place{{Name: "x", Root: root}}, model.Optional[int64]{}).OK(), "%s with --ignore-times", name)
		}
	}
}

// All of a save but its state was overwritten, where the order of writing tells it from a copy.
func TestTimes_OverwrittenButForTheState(t *testing.T) {
	fsys := hfTimes(t)
	for _, name := range below(fsys, "checkpoint-200") {
		if path.Base(name) != "trainer_state.json" {
			later(fsys, time.Hour, name)
		}
	}
	inSeconds(fsys, time.Second)
	require.False(t, judge(t, loader, fsys).OK())
}

// In a folder that every save overwrites, too, whole seconds excuse what lies within them, and no hours.
func TestTimesInPlace_Overwritten(t *testing.T) {
	second := func(n int64) time.Time { return time.Unix(1_790_000_000+n, 0) }
	for name, tc := range map[string]struct {
		times [3]time.Time // of .metadata and the shards
		want  bool
	}{
		"within a second":        {[3]time.Time{second(0), second(0), second(1)}, true},
		"within two":             {[3]time.Time{second(0), second(2), second(2)}, true},
		"by name, minutes each":  {[3]time.Time{second(0), second(180), second(360)}, true},
		"one minutes later":      {[3]time.Time{second(0), second(0), second(240)}, false},
		"one hours later":        {[3]time.Time{second(0), second(1), second(7201)}, false},
		"metadata hours earlier": {[3]time.Time{second(0), second(7200), second(7201)}, false},
	} {
		fsys := fstest.MapFS{}
		put(fsys, ".", 200, "w", "optimizer.w", "step")
		for i, file := range []string{".metadata", "__0_0.distcp", "__1_0.distcp"} {
			fsys[file].ModTime = tc.times[i]
		}
		r := judge(t, loader, fsys)
		require.Equal(t, tc.want, r.OK(), "%s: %s", name, r.Why)
	}
}

// A copy that takes minutes for each shard has all its saves spread alike, be .metadata among them where it will.
func TestTimes_SlowCopies(t *testing.T) {
	for name, files := range map[string][]string{
		"metadata in the midst":   {"__0_0.distcp", ".metadata", "__1_0.distcp"},
		"from the last rank":      {"__1_0.distcp", ".metadata", "__0_0.distcp"},
		"metadata first":          {".metadata", "__1_0.distcp", "__0_0.distcp"},
		"metadata last, by names": {"__0_0.distcp", "__1_0.distcp", ".metadata"},
	} {
		fsys := titanTimes(t)
		at := began
		for _, dir := range []string{"step-100/", "step-200/"} {
			for _, file := range files {
				if f := fsys[dir+file]; file != ".metadata" {
					f.Data = append(f.Data, make([]byte, 20<<20)...)
					at = at.Add(3 * time.Minute)
				}
				at = at.Add(20 * time.Millisecond)
				fsys[dir+file].ModTime = at
			}
		}
		r := judge(t, loader, fsys)
		require.True(t, r.OK(), "%s: %s %+v", name, r.Why, r.Saves)
	}
}

// Copies that keep whole seconds, in whatever order, are as seldom taken for two attempts as others.
func TestTimes_RandomCopiesInSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		make    func(*testing.T) fstest.MapFS
		refused int // at most, of all copies of one span
	}{
		"trainer":                   {hfTimes, 1},
		"trainer, one save":         {hfOne, 1},
		"torchtitan":                {titanTimes, 1},
		"torchtitan, eight ranks":   {ranksTimes(8), 1},
		"megatron":                  {megatronTimes, 1},
		"torchtitan, of three ones": {ranksTimes(2), 3},
		"deepspeed":                 {deepspeedTimes, 1},
	} {
		for _, span := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
			refused := 0
			fsys := tc.make(t)
			for seed := range uint64(copies) {
				shuffle(fsys, seed, span)
				inSeconds(fsys, time.Second)
				if !judge(t, loader, fsys).OK() {
					refused++
				}
			}
			require.LessOrEqual(t, refused, tc.refused, "%s within %v", name, span)
		}
	}
}
