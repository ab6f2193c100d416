// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// chain runs NVIDIA's Inspector behind the plugin, where it is there.
func (n *ncclChecks) chain(ctx context.Context) {
	path := n.inspector()
	if path == "" {
		n.p.Add("chain", report.NotShown, "no libnccl-profiler-inspector.so beside libnccl, on the library path or in NCCL_INSPECTOR_PLUGIN")
		return
	}
	if n.k.GPU == nil {
		n.p.Add("chain", report.NotShown, "Inspector needs NCCL on a GPU")
		return
	}
	if !n.room(ctx, "chain", 15*time.Second) {
		return
	}
	if n.way == nil && n.silent {
		n.p.Add("chain", report.NotShown, unreported)
		return
	}
	dumps := filepath.Join(n.k.Work, "inspector")
	err := os.MkdirAll(dumps, 0o700)
	run := ncclRun{Name: "chain", World: 1, Phases: []string{ncclList}, Level: "collectives", Limit: ncclOneLimit, Env: []string{
		"LOCKSTEP_CHAIN=" + path, "NCCL_INSPECTOR_ENABLE=1", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=200000",
		"NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=0", "NCCL_INSPECTOR_DUMP_DIR=" + dumps,
	}}
	if n.way != nil {
		run.World, run.Way = 2, *n.way
	} else {
		run.Phases = append(run.Phases, ncclSelf)
	}
	res := n.run(ctx, run)
	if n.cut("chain", res) {
		return
	}
	wrote, globErr := os.ReadDir(dumps)
	if err = errors.Join(err, res.Err, globErr); err != nil {
		n.p.Add("chain", report.Failed, err.Error())
		return
	}
	n.judge("chain", chainProblems(res, len(wrote), run.World), fmt.Sprintf("%s behind the plugin: both recorded", path), figure("files of the other", len(wrote)))
}

// unreported is why a job of one rank shows nothing of the plugin.
const unreported = "needs two ranks on the GPU: NCCL reports no message of a rank to itself"

func chainProblems(res *ncclResult, files, world int) (problems []string) {
	problems = ringsProblems(res.Seen, world)
	if world == 1 {
		problems = append(problems, recordProblems(res.Seen)...)
	} else {
		v := compareNCCL(res.Truths, res.Seen)
		problems = slices.Concat(problems, v.Problems[ncclAboutOps], v.Problems[ncclAboutEnds])
	}
	if files == 0 {
		problems = append(problems, "the other plugin wrote no file")
	}
	return problems
}

// recordProblems tests that every ring has a record, of any kind.
func recordProblems(seen []*ringSeen) (problems []string) {
	for _, s := range seen {
		count := uint64(0)
		for _, n := range s.Kinds {
			count += n
		}
		if count == 0 {
			problems = append(problems, fmt.Sprintf("rank %d: got no record in its ring; want some", s.Header.Rank))
		}
	}
	return problems
}

// inspector returns the path of NVIDIA's plugin; empty where it is not there.
func (n *ncclChecks) inspector() string {
	const name = "libnccl-profiler-inspector.so"
	candidates := []string{os.Getenv("NCCL_INSPECTOR_PLUGIN")}
	dirs := strings.Split(os.Getenv("LD_LIBRARY_PATH"), ":")
	if n.k.Torch != nil && n.k.Torch.LibNCCL != "" {
		dirs = append(dirs, filepath.Dir(n.k.Torch.LibNCCL))
	}
	for _, dir := range append(dirs, "/usr/lib/x86_64-linux-gnu", "/usr/local/lib", "/usr/local/nccl/lib") {
		candidates = append(candidates, filepath.Join(dir, name))
	}
	for _, path := range candidates {
		if !filepath.IsAbs(path) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}
