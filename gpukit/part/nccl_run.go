// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// ncclRun is one job of programs/nccl_ranks.py.
type ncclRun struct {
	Name   string // of its folder, and of its files in the fixture
	World  int
	Phases []string
	Level  string   // of the plugin; empty: no plugin
	Env    []string // NCCL's, beside those that every run has
	Way    gpuWay
	Ops    int // of the loop
	Limit  time.Duration
	// During is called once the ranks run, and may take as long as they do.
	During func(ctx context.Context, r *ncclRunning)
}

// ncclRunning is a job that runs.
type ncclRunning struct {
	Dir     string
	Address string // of NCCL's RAS
	World   int
}

// ncclResult is what a job left.
type ncclResult struct {
	Dir    string
	Truths []*ncclTruth
	Seen   []*ringSeen
	Log    string // NCCL's own, all ranks
	Err    error  // the first rank that did not end well
}

// ncclSlots is how many operations may be in flight: more than a job of one rank does,
// since NCCL reports no end of a message to itself.
const ncclSlots = "1024"

// Names of files by which the caller and the ranks of a job talk.
const (
	fileJoin = "join" // the last rank may join
	fileGo   = "go"   // the ranks may end
)

// run runs a job, and returns what it left, whatever became of it.
func (n *ncclChecks) run(ctx context.Context, r ncclRun) *ncclResult {
	res := &ncclResult{Dir: filepath.Join(n.k.Work, r.Name)}
	address, err := freeAddress(ctx)
	if err == nil {
		err = os.MkdirAll(filepath.Join(res.Dir, "rings"), 0o700)
	}
	if err != nil {
		res.Err = fmt.Errorf("prepare job %s: %w", r.Name, err)
		return res
	}
	res.Err = n.processes(ctx, r, &ncclRunning{res.Dir, address, r.World})
	if res.Truths, err = readTruths[ncclTruth](res.Dir, r.World); err != nil {
		res.Err = errors.Join(res.Err, err)
	}
	if r.Level != "" {
		if res.Seen, err = readRings(filepath.Join(res.Dir, "rings")); err != nil {
			res.Err = errors.Join(res.Err, err)
		}
	}
	if res.Log, err = ncclLog(res.Dir, r.World); err != nil {
		res.Err = errors.Join(res.Err, err)
	}
	n.keep(r, res)
	return res
}

// processes starts the ranks and waits for them.
func (n *ncclChecks) processes(ctx context.Context, r ncclRun, running *ncclRunning) error {
	command := func(rank int) kit.Command { return n.command(r, running, rank) }
	_, err := runJob(ctx, n.k, r.World, r.Limit, command, func(ctx context.Context) {
		if r.During != nil {
			r.During(ctx, running)
		}
	})
	return err
}

func (n *ncclChecks) command(r ncclRun, running *ncclRunning, rank int) kit.Command {
	args := []string{
		n.k.Program("nccl_ranks.py"), "--rank", strconv.Itoa(rank), "--world", strconv.Itoa(r.World),
		"--folder", running.Dir, "--phases", strings.Join(r.Phases, ","), "--ops", strconv.Itoa(r.Ops),
	}
	if n.k.GPU == nil {
		args = append(args, "--plugin", n.k.Plugin())
	}
	env := []string{
		"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=" + strconv.Itoa(r.World), "LOCAL_RANK=0",
		"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,ENV,PROFILE,RAS", "NCCL_DEBUG_FILE=" + filepath.Join(running.Dir, fmt.Sprintf("nccl-%d.log", rank)),
		"NCCL_SOCKET_IFNAME=lo", "NCCL_RAS_ENABLE=1", "NCCL_RAS_ADDR=" + running.Address,
	}
	if r.Level != "" {
		env = append(env, "NCCL_PROFILER_PLUGIN="+n.k.Plugin(), "LOCKSTEP_DIR="+filepath.Join(running.Dir, "rings"), "LOCKSTEP_LEVEL="+r.Level,
			"LOCKSTEP_JOB_ID="+r.Name, "LOCKSTEP_RING_RECORDS=8192", "LOCKSTEP_RING_LANES=8", "LOCKSTEP_RING_SLOTS="+ncclSlots)
	}
	if r.Way.Env != nil {
		env = append(append(env, ncclNetwork...), r.Way.Env(rank)...)
	}
	return withRoom(n.k, kit.Command{Path: n.k.Python, Args: args, Env: append(env, r.Env...)})
}

// freeAddress returns an address of this host on which no process listens.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// ncclLog returns NCCL's own log of all ranks; a rank that wrote none is left out.
func ncclLog(dir string, world int) (string, error) {
	var all strings.Builder
	var errs []error
	for rank := range world {
		text, err := kit.ReadFile(filepath.Join(dir, fmt.Sprintf("nccl-%d.log", rank)), maxLog)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		all.Write(text)
	}
	return all.String(), errors.Join(errs...)
}

// keep takes the files of a job into the fixture.
func (n *ncclChecks) keep(r ncclRun, res *ncclResult) {
	if r.Phases[0] == ncclLoop {
		return
	}
	add := func(to *[]kit.Entry, name, path string) {
		e, err := kit.FileEntry(path)
		switch {
		case err == nil:
			*to = append(*to, kit.Entry{Name: r.Name + "/" + name, Content: e.Content})
		case !errors.Is(err, os.ErrNotExist):
			n.p.Add("fixture", report.Failed, err.Error())
		}
	}
	for rank := range r.World {
		for _, name := range []string{"truth-%d.json", "nccl-%d.log"} {
			name = fmt.Sprintf(name, rank)
			add(&n.entries, name, filepath.Join(res.Dir, name))
		}
	}
	rings, err := filepath.Glob(filepath.Join(res.Dir, "rings", "*.ring"))
	if err != nil {
		return
	}
	for _, path := range rings {
		add(&n.rings, filepath.Base(path), path)
	}
}

// waitFiles returns when every rank has left the file, or ctx is done.
func (r *ncclRunning) waitFiles(ctx context.Context, name string) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		there := 0
		for rank := range r.World {
			if _, err := os.Stat(filepath.Join(r.Dir, fmt.Sprintf("%s-%d", name, rank))); err == nil {
				there++
			}
		}
		if there == r.World {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// signal makes a file that the ranks wait for.
func (r *ncclRunning) signal(name string) error {
	if err := os.WriteFile(filepath.Join(r.Dir, name), nil, 0o600); err != nil {
		return fmt.Errorf("signal ranks: %w", err)
	}
	return nil
}
