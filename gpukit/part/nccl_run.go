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
)

// ncclRun is one job of programs/nccl_ranks.py.
type ncclRun struct {
	Name   string // of its folder, and of its files in the fixture
	World  int
	Phases []string
	Level  string   // of the plugin; empty: no plugin
	Env    []string // NCCL's, beside those that every run has
	Way    ncclWay
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
	Seen   []*ncclSeen
	Log    string // NCCL's own, all ranks
	Err    error  // the first rank that did not end well
}

// ncclWay is a way to have several ranks on one GPU.
type ncclWay struct {
	Name string
	Env  func(rank int) []string
}

// ncclWays returns the ways that a library with these strings may have, best first.
func ncclWays(has map[string]bool) (ways []ncclWay) {
	if has[multiRank] {
		ways = append(ways, ncclWay{multiRank, func(int) []string { return []string{multiRank + "=1"} }})
	}
	if has[hostID] {
		ways = append(ways, ncclWay{hostID, func(rank int) []string { return []string{hostID + "=lockstep-" + strconv.Itoa(rank)} }})
	}
	return ways
}

const (
	multiRank = "NCCL_MULTI_RANK_GPU_ENABLE"
	hostID    = "NCCL_HOSTID"
)

// ncclNetwork lets ranks of one GPU meet over loopback: nothing that needs another GPU,
// memory of two processes or a network card, and few channels, since the kernels of two
// processes take turns on the device.
var ncclNetwork = []string{
	"NCCL_NET_PLUGIN=none", "NCCL_NET=Socket", "NCCL_IB_DISABLE=1", "NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1",
	"NCCL_NVLS_ENABLE=0", "NCCL_MNNVL_ENABLE=0", "NCCL_COLLNET_ENABLE=0", "NCCL_GIN_ENABLE=0", "NCCL_CUMEM_ENABLE=0",
	"NCCL_CUMEM_HOST_ENABLE=0", "NCCL_MAX_NCHANNELS=2", "NCCL_MAX_P2P_NCHANNELS=2",
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
	if res.Truths, err = readTruths(res.Dir, r.World); err != nil {
		res.Err = errors.Join(res.Err, err)
	}
	if r.Level != "" {
		if res.Seen, err = readRings(filepath.Join(res.Dir, "rings")); err != nil {
			res.Err = errors.Join(res.Err, err)
		}
	}
	res.Log = ncclLog(res.Dir, r.World)
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
	args := []string{n.k.Program("nccl_ranks.py"), "--rank", strconv.Itoa(rank), "--world", strconv.Itoa(r.World),
		"--folder", running.Dir, "--phases", strings.Join(r.Phases, ","), "--ops", strconv.Itoa(r.Ops)}
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

// freeAddress returns an address of this host on which nobody listens.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func ncclLog(dir string, world int) string {
	var all strings.Builder
	for rank := range world {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("nccl-%d.log", rank)))
		if err == nil {
			all.Write(text)
		}
	}
	return all.String()
}

// keep takes the files of a job into the fixture.
func (n *ncclChecks) keep(r ncclRun, res *ncclResult) {
	if r.Phases[0] == ncclLoop {
		return
	}
	add := func(name, path string) {
		if text, err := os.ReadFile(path); err == nil {
			n.entries = append(n.entries, kit.Entry{Name: r.Name + "/" + name, Content: text})
		}
	}
	for rank := range r.World {
		for _, name := range []string{"truth-%d.json", "nccl-%d.log"} {
			name = fmt.Sprintf(name, rank)
			add(name, filepath.Join(res.Dir, name))
		}
	}
	rings, err := filepath.Glob(filepath.Join(res.Dir, "rings", "*.ring"))
	if err != nil {
		return
	}
	for _, path := range rings {
		add(filepath.Base(path), path)
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
