// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// began is when the first file of a folder was written; its fraction is that of a real clock.
var began = time.Unix(1_790_000_000, 123_456_789)

// order gives the files of a save their times as the framework writes them, so far apart. It returns the time
// after the last.
func order(fsys fstest.MapFS, at time.Time, apart time.Duration, files ...string) time.Time {
	for _, name := range files {
		fsys[name].ModTime = at
		at = at.Add(apart)
	}
	return at
}

// below are the files in a folder, by name.
func below(fsys fstest.MapFS, dir string) (files []string) {
	for _, name := range slices.Sorted(maps.Keys(fsys)) {
		if path.Dir(name) == dir || dir == "." {
			files = append(files, name)
		}
	}
	return files
}

// hfTimes are two saves of the Trainer, whose state comes last, 10 minutes apart.
func hfTimes(t *testing.T) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	for i, step := range []int{100, 200} {
		hf(t, fsys, step)
		dir := fmt.Sprintf("checkpoint-%d/", step)
		fsys[dir+"config.json"] = text("{}")
		order(fsys, began.Add(time.Duration(i)*10*time.Minute), 700*time.Millisecond, dir+"config.json", dir+"pytorch_model.bin", dir+"training_args.bin",
			dir+"optimizer.pt", dir+"scheduler.pt", dir+"rng_state.pth", dir+"trainer_state.json")
	}
	return fsys
}

// titanTimes are two saves of torchtitan, whose .metadata comes last.
func titanTimes(*testing.T) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i, step := range []int64{100, 200} {
		titan(fsys, step, true)
		dir := fmt.Sprintf("step-%d/", step)
		order(fsys, began.Add(time.Duration(i)*10*time.Minute), 700*time.Millisecond, dir+"__0_0.distcp", dir+"__1_0.distcp", dir+".metadata")
	}
	return fsys
}

// megatronTimes are two iterations of Megatron, and the tracker that the last has set.
func megatronTimes(t *testing.T) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	for i, step := range []int{100, 200} {
		megatronRanks(t, fsys, step, nil, optimizerPair, rngPair)
		dir := fmt.Sprintf("iter_%07d/", step)
		order(fsys, began.Add(time.Duration(i)*10*time.Minute), 700*time.Millisecond, dir+"mp_rank_00/model_optim_rng.pt", dir+"mp_rank_01/model_optim_rng.pt", "latest_checkpointed_iteration.txt")
	}
	return fsys
}

// later moves files on.
func later(fsys fstest.MapFS, by time.Duration, files ...string) {
	for _, name := range files {
		fsys[name].ModTime = fsys[name].ModTime.Add(by)
	}
}

const (
	titan200, titan100 = "step-200/__1_0.distcp", "step-100/__1_0.distcp"
	rank200            = "iter_0000200/mp_rank_01/model_optim_rng.pt"
	model200           = "checkpoint-200/pytorch_model.bin"
	tracker            = "latest_checkpointed_iteration.txt"
)

// Times are those of writing, of a copy, or of clocks that differ. Only files that were written well after what
// commits them, in one save, are of another attempt; and that only times tell.
func TestTimes(t *testing.T) {
	all := func(at func(i int, name string) time.Time) func(fstest.MapFS) {
		return func(fsys fstest.MapFS) {
			for i, name := range below(fsys, ".") {
				fsys[name].ModTime = at(i, name)
			}
		}
	}
	second := func(i int) time.Time { return began.Truncate(time.Second).Add(time.Duration(i) * time.Second) }
	kinds := map[string]func(*testing.T) fstest.MapFS{"trainer": hfTimes, "torchtitan": titanTimes, "megatron": megatronTimes}
	for name, tc := range map[string]struct {
		change func(fstest.MapFS)
		of     []string // kinds; all where there is none
		want   bool
	}{
		"as written":                         {func(fstest.MapFS) {}, nil, true},
		"copied by name":                     {all(func(i int, _ string) time.Time { return second(i) }), nil, true},
		"copied by name, from the last":      {all(func(i int, _ string) time.Time { return second(-i) }), nil, true},
		"copied at once":                     {all(func(int, string) time.Time { return second(0) }), nil, true},
		"copied at once, with a fraction":    {all(func(int, string) time.Time { return began }), nil, true},
		"copied, milliseconds apart":         {all(func(i int, _ string) time.Time { return began.Add(time.Duration(i*i%7) * time.Millisecond) }), nil, true},
		"copied in seconds, in any order":    {all(func(i int, _ string) time.Time { return second(i * 5 % 17 * 400) }), nil, true},
		"uploads of minutes, in any order":   {all(func(i int, _ string) time.Time { return second(7200 - i*i%11*300) }), nil, true},
		"copied by name, of minutes each":    {all(func(i int, _ string) time.Time { return began.Add(time.Duration(i) * 3 * time.Minute) }), []string{"trainer"}, true},
		"copied backwards, of minutes each":  {all(func(i int, _ string) time.Time { return began.Add(-time.Duration(i) * 3 * time.Minute) }), []string{"trainer"}, true},
		"the tracker first, of minutes each": {func(f fstest.MapFS) { f[tracker].ModTime = began.Add(-time.Hour) }, []string{"megatron"}, true},
		"a clock 1 ms ahead":                 {func(f fstest.MapFS) { f[titan200].ModTime = f["step-200/.metadata"].ModTime.Add(time.Millisecond) }, []string{"torchtitan"}, true},
		"a clock 18 ms ahead":                {func(f fstest.MapFS) { f[titan200].ModTime = f["step-200/.metadata"].ModTime.Add(18 * time.Millisecond) }, []string{"torchtitan"}, true},
		"a clock 3 s ahead":                  {func(f fstest.MapFS) { later(f, 3*time.Second, titan100, titan200) }, []string{"torchtitan"}, true},
		"a clock 2 s ahead, Megatron":        {func(f fstest.MapFS) { later(f, 3*time.Second, rank200) }, []string{"megatron"}, true},

		"each save overwritten":    {func(f fstest.MapFS) { later(f, 7*time.Minute, titan100, titan200) }, []string{"torchtitan"}, false},
		"a shard overwritten":      {func(f fstest.MapFS) { later(f, 4*time.Minute, titan200) }, []string{"torchtitan"}, false},
		"a shard overwritten soon": {func(f fstest.MapFS) { later(f, 20*time.Second, titan200) }, []string{"torchtitan"}, false},
		"overwritten, and a clock ahead": {func(f fstest.MapFS) {
			f["step-200/__0_0.distcp"].ModTime = f["step-200/.metadata"].ModTime.Add(18 * time.Millisecond)
			later(f, 4*time.Minute, titan200)
		}, []string{"torchtitan"}, false},
		"overwritten, and clocks ahead in each": {func(f fstest.MapFS) {
			f[titan100].ModTime = f["step-100/.metadata"].ModTime.Add(18 * time.Millisecond)
			later(f, 4*time.Minute, titan200)
		}, []string{"torchtitan"}, false},
		"a model overwritten": {func(f fstest.MapFS) { later(f, 5*time.Minute, model200) }, []string{"trainer"}, false},
		"a model and more overwritten": {func(f fstest.MapFS) {
			later(f, 5*time.Minute, "checkpoint-200/config.json", model200, "checkpoint-200/training_args.bin")
		}, []string{"trainer"}, false},
		"all but the state overwritten": {func(f fstest.MapFS) {
			for _, name := range below(f, "checkpoint-200") {
				if path.Base(name) != "trainer_state.json" {
					later(f, time.Hour, name)
				}
			}
		}, []string{"trainer"}, false},
		"a rank overwritten": {func(f fstest.MapFS) { later(f, 5*time.Minute, rank200) }, []string{"megatron"}, false},
		"the save before came after": {func(f fstest.MapFS) {
			later(f, 20*time.Minute, below(f, "step-100")...)
			later(f, 30*time.Minute, titan200)
		}, []string{"torchtitan"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, make := range kinds {
				if tc.of != nil && !slices.Contains(tc.of, kind) {
					continue
				}
				fsys := make(t)
				tc.change(fsys)
				r := judge(t, loader, fsys)
				require.Equal(t, tc.want, r.OK(), "%s: %s %+v", kind, r.Why, r.Saves)
				if tc.want {
					continue
				}
				require.Equal(t, ckpt.CheckOrder, r.Judged.Problems[0].Check)
				require.Contains(t, r.Judged.Problems[0].What, "--ignore-times")
				root := ckpt.Read(t.Context(), fsys, ckpt.Options{IgnoreTimes: true})
				r = preflight.Judge([]preflight.Place{{Name: "x", Root: root}}, loader)
				require.True(t, r.OK(), "%s, --ignore-times: %s", kind, r.Why)
			}
		})
	}
}

// One save that was copied has no others to be compared with.
func TestTimesOfOneSave(t *testing.T) {
	for name, tc := range map[string]struct {
		late          time.Duration // of a shard after .metadata
		seconds, want bool
	}{
		"as written":                {-time.Minute, false, true},
		"a clock ahead":             {20 * time.Millisecond, false, true},
		"a clock seconds ahead":     {5 * time.Second, false, true},
		"copied in whole seconds":   {40 * time.Second, true, true},
		"overwritten, in seconds":   {5 * time.Minute, true, false},
		"overwritten":               {5 * time.Minute, false, false},
		"overwritten after seconds": {15 * time.Second, false, false},
	} {
		for _, dir := range []string{"step-200", "."} { // the folder of saves, and the save
			fsys := fstest.MapFS{}
			put(fsys, dir, 200, "w", "optimizer.w", "train_state.step")
			at := began
			if tc.seconds {
				at = at.Truncate(time.Second)
			}
			for _, file := range []string{".metadata", "__0_0.distcp", "__1_0.distcp"} {
				fsys[path.Join(dir, file)].ModTime = at
			}
			later(fsys, -time.Second, path.Join(dir, "__0_0.distcp"))
			later(fsys, tc.late, path.Join(dir, "__1_0.distcp"))
			root := ckpt.Read(t.Context(), named{fsys, "step-200"}, ckpt.Options{})
			r := preflight.Judge([]preflight.Place{{Name: "x", Root: root}}, loader)
			require.Equal(t, tc.want, r.OK(), "%s in %s: %s", name, dir, r.Why)
		}
	}
}

// named is a folder with a name.
type named struct {
	fstest.MapFS
	name string
}

func (n named) Name() string { return n.name }

// In a folder that each save overwrites, a shard that is not older may be of another epoch: however short that
// was, clocks do not explain it. Times that a copy made say nothing.
func TestTimesInPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		times [3]time.Time // of .metadata and the shards
		want  bool
	}{
		"as written":                 {[3]time.Time{began.Add(time.Second), began, began}, true},
		"one of the same time":       {[3]time.Time{began, began, began.Add(-time.Second)}, false},
		"one a millisecond later":    {[3]time.Time{began, began.Add(time.Millisecond), began.Add(-time.Second)}, false},
		"one minutes later":          {[3]time.Time{began, began.Add(-time.Second), began.Add(5 * time.Minute)}, false},
		"all of one whole second":    {[3]time.Time{time.Unix(1_790_000_000, 0), time.Unix(1_790_000_000, 0), time.Unix(1_790_000_000, 0)}, true},
		"whole seconds, by name":     {[3]time.Time{time.Unix(1_790_000_000, 0), time.Unix(1_790_000_001, 0), time.Unix(1_790_000_002, 0)}, true},
		"whole seconds, by no order": {[3]time.Time{time.Unix(1_790_000_000, 0), time.Unix(1_790_000_002, 0), time.Unix(1_790_000_001, 0)}, false},
		"before all times":           {[3]time.Time{time.Unix(0, 0), time.Unix(0, 0), time.Unix(0, 0)}, false},
	} {
		fsys := fstest.MapFS{}
		put(fsys, ".", 200, "w", "optimizer.w", "step")
		for i, file := range []string{".metadata", "__0_0.distcp", "__1_0.distcp"} {
			fsys[file].ModTime = tc.times[i]
		}
		r := judge(t, loader, fsys)
		require.Equal(t, tc.want, r.OK(), "%s: %s", name, r.Why)
		root := ckpt.Read(t.Context(), fsys, ckpt.Options{IgnoreTimes: true})
		require.True(t, preflight.Judge([]preflight.Place{{Name: "x", Root: root}}, model.Optional[int64]{}).OK(), name)
	}
}

// The names of a save's files are in no order in which a framework writes them, however long each takes to copy;
// nor is a tracker older than all that it commits.
func TestTimesOfOneSaveInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		apart time.Duration
		want  bool
	}{
		"by name":        {3 * time.Minute, true},
		"from the last":  {-3 * time.Minute, true},
		"by name, hours": {2 * time.Hour, true},
	} {
		fsys := fstest.MapFS{}
		hf(t, fsys, 200)
		order(fsys, began, tc.apart, below(fsys, "checkpoint-200")...)
		r := judge(t, loader, fsys)
		require.Equal(t, tc.want, r.OK(), "%s: %s", name, r.Why)
		later(fsys, 30*tc.apart.Abs(), "checkpoint-200/rng_state.pth")
		require.False(t, judge(t, loader, fsys).OK(), "%s, one overwritten since", name)
	}
	fsys := fstest.MapFS{}
	megatronRanks(t, fsys, 200, nil, optimizerPair, rngPair)
	order(fsys, began, 7*time.Minute, tracker, rank200, "iter_0000200/mp_rank_00/model_optim_rng.pt")
	require.True(t, judge(t, loader, fsys).OK(), "all ranks are of one attempt")
	fsys["iter_0000200/mp_rank_00/model_optim_rng.pt"].ModTime = began.Add(-time.Minute)
	require.False(t, judge(t, loader, fsys).OK())
}

// Megatron writes both files of a rank in the order of their names, which makes no copy of them.
func TestTimes_TwoFilesOfEachRank(t *testing.T) {
	fsys := fstest.MapFS{}
	const ranks = 8
	for i, step := range []int{100, 200} {
		at := began.Add(time.Duration(i) * 10 * time.Minute)
		for r := range ranks {
			dir := fmt.Sprintf("iter_%07d/mp_rank_%02d/", step, r)
			fsys[dir+"distrib_optim.pt"] = torchFile(t, pair{"state", 1})
			args := []pair{{"tensor_model_parallel_size", ranks}, {"use_distributed_optimizer", true}}
			fsys[dir+"model_optim_rng.pt"] = megatronRank(t, step, args, optimizerPair, rngPair)
			start := at.Add(time.Duration(r*37%11) * 100 * time.Millisecond) // ranks end in no order
			order(fsys, start, 10*time.Millisecond, dir+"distrib_optim.pt", dir+"model_optim_rng.pt")
		}
		fsys[tracker] = text(fmt.Sprint(step))
		fsys[tracker].ModTime = at.Add(2 * time.Second)
	}
	require.True(t, judge(t, loader, fsys).OK())
	for r := range ranks / 2 { // the next life comes to the same step, and is cut off
		dir := fmt.Sprintf("iter_0000200/mp_rank_%02d/", r)
		later(fsys, 20*time.Minute, dir+"distrib_optim.pt", dir+"model_optim_rng.pt")
	}
	require.False(t, judge(t, loader, fsys).OK())
}
