// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lockstep-otel/lockstep/internal/report"
)

// demoJob is the worker processes of one demo.
type demoJob struct {
	cmds    []*exec.Cmd
	stderr  *workerStderr
	readers []chan struct{} // closed when the output of that rank has been read
	lines   chan demoLine   // closed when all have ended
	err     error           // why the job failed, once lines is closed
	torch   bool            // the ranks are PyTorch's
	hangs   bool            // the job is to stand still
	grace   time.Duration   // to end after a signal
	dies    int             // rank that is to end before the others; -1: none
	began   atomic.Bool     // a step has been told of
	asked   atomic.Bool     // to end

	mu       sync.Mutex
	answered []bool       // by rank: its output has ended
	ended    bool         // by kill
	killed   []killedRank // those that did not end when they were asked to
}

// demoLine is what a worker prints: its progress, or at the end its result.
type demoLine struct {
	Done      bool    `json:"done"`
	Rank      int     `json:"rank"`
	Step      int64   `json:"step"`
	Steps     int64   `json:"steps"`
	Loss      float64 `json:"loss"`
	LossFirst float64 `json:"loss_first"`
	LossLast  float64 `json:"loss_last"`
	Identical bool    `json:"weights_identical"`
	// Iteration is a number of the last step, and an object of all in the end.
	Iteration json.RawMessage `json:"iteration_ms"`
}

type demoTimes struct{ P50, P95, Mean float64 }

// last returns the time of the last step in ms.
func (l *demoLine) last() float64 {
	v, _ := strconv.ParseFloat(string(l.Iteration), 64)
	return v
}

func (l *demoLine) times() (t demoTimes) {
	_ = json.Unmarshal(l.Iteration, &t)
	return t
}

// demoRing is the size of the ring of each rank: four threads write, and some
// thousand records are minutes of a job as small as this one. 4 MiB per rank.
var demoRing = []string{"LOCKSTEP_RING_LANES=8", "LOCKSTEP_RING_RECORDS=4096", "LOCKSTEP_RING_SLOTS=1024"}

// startDemoJob starts all workers, or none. They end with this process: the
// kernel signals them when the thread that started them ends, so that thread
// stays until they have ended.
func startDemoJob(o *demoOptions, parts demoParts, dir string, stderr io.Writer) (*demoJob, error) {
	j := &demoJob{
		lines: make(chan demoLine, 64), stderr: newWorkerStderr(stderr), answered: make([]bool, o.ranks),
		torch: o.torch != "", hangs: o.hangs(), grace: o.grace(), dies: -1,
	}
	if o.fault == "exit" {
		j.dies = o.rank
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := j.start(o, parts, dir)
		started <- err
		if err == nil {
			j.wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return j, nil
}

func (j *demoJob) start(o *demoOptions, parts demoParts, dir string) error {
	more, err := o.jobEnv(&parts)
	if err != nil {
		return err
	}
	for rank := range o.ranks {
		program, args := o.command(rank, &parts, dir)
		cmd := exec.CommandContext(context.Background(), program, args...)
		cmd.Env = slices.Concat(demoEnviron(os.Environ()), o.workerEnv(rank, dir, &parts), more)
		cmd.Stderr = j.stderr.of(rank)
		cmd.SysProcAttr = childAttributes()
		stdout, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			j.signal(syscall.SIGKILL)
			for _, c := range j.cmds {
				_ = c.Wait()
			}
			return fmt.Errorf("start worker of rank %d: %w", rank, err)
		}
		j.cmds = append(j.cmds, cmd)
		j.pipe(stdout)
	}
	return nil
}

func (o *demoOptions) workerArgs(rank int, dir string) []string {
	args := []string{
		"--rank", strconv.Itoa(rank), "--ranks", strconv.Itoa(o.ranks),
		"--steps", strconv.FormatInt(o.steps, 10), "--meet", filepath.Join(dir, "meet"),
	}
	if !o.keep {
		args = append(args, "--cleanup", dir)
	}
	if rank == 0 {
		args = append(args, "--progress")
	}
	if rank == o.rank && o.fault != "none" {
		args = append(args, "--fault", o.fault, "--fault-from", strconv.FormatInt(o.from, 10))
	}
	if o.fault == "checkpoint" {
		args = append(args, "--checkpoint-every", "1")
	}
	if o.hangs() {
		args = append(args, "--patient")
	}
	if !o.marks() {
		args = append(args, "--no-markers")
	}
	if o.bare {
		args = append(args, "--no-pace")
	}
	return append(args, o.args...)
}

func (o *demoOptions) workerEnv(rank int, dir string, parts *demoParts) []string {
	r := strconv.Itoa(rank)
	return []string{
		"NCCL_PROFILER_PLUGIN=" + parts.plugin,
		"LOCKSTEP_DIR=" + filepath.Join(dir, "rings"), "LOCKSTEP_LEVEL=" + o.level,
		"LOCKSTEP_DEBUG=1", // the command wants to know which has no ring
		"LOCKSTEP_JOB_NAME=demo", "LOCKSTEP_JOB_ID=" + filepath.Base(dir),
		"RANK=" + r, "LOCAL_RANK=" + r, "WORLD_SIZE=" + strconv.Itoa(o.ranks),
	}
}

// jobEnv is what all ranks are told alike.
func (o *demoOptions) jobEnv(parts *demoParts) ([]string, error) {
	if o.torch == "" {
		return append(slices.Clone(demoRing), o.witnessEnv(parts)...), nil
	}
	port, err := freePort()
	return append(slices.Clone(torchRing), torchEnv(parts, port)...), err
}

// demoEnviron is the environment without what would tell a worker that it is
// part of another job.
func demoEnviron(env []string) (kept []string) {
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == "NCCL_DEBUG":
		case strings.HasPrefix(name, "LOCKSTEP_") || strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "SLURM_") ||
			strings.HasPrefix(name, "OMPI_") || strings.HasPrefix(name, "PMI_") || strings.HasPrefix(name, "TORCHELASTIC_") ||
			name == "CUDA_INJECTION64_PATH" || name == "NVTX_INJECTION64_PATH" ||
			name == "RANK" || name == "LOCAL_RANK" || name == "WORLD_SIZE":
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// pipe reads a worker's lines until it closes its output.
func (j *demoJob) pipe(r io.Reader) {
	reader := bufio.NewScanner(r)
	done := make(chan struct{})
	j.readers = append(j.readers, done)
	go func() {
		defer close(done)
		for reader.Scan() {
			var l demoLine
			if json.Unmarshal(reader.Bytes(), &l) == nil {
				j.began.Store(true)
				j.lines <- l
			}
		}
	}()
}

// wait waits for all workers. The first that fails takes the others down: they
// could only wait for it.
func (j *demoJob) wait() {
	failed := make([]error, len(j.cmds))
	var all sync.WaitGroup
	var grace *time.Timer // of the others, once one failed
	for rank, cmd := range j.cmds {
		all.Go(func() {
			<-j.readers[rank] // Wait closes the pipe
			j.answer(rank)
			err := cmd.Wait()
			if r, ok := cmd.Stderr.(*rankStderr); ok {
				r.flush()
			}
			j.mu.Lock()
			defer j.mu.Unlock()
			if err != nil && !j.calledOff() && rank != j.dies {
				failed[rank] = j.failure(rank, err)
				j.signal(syscall.SIGTERM)
				if grace == nil {
					grace = time.AfterFunc(j.grace, j.kill)
				}
			}
		})
	}
	all.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if grace != nil {
		grace.Stop()
	}
	for _, k := range j.killed {
		failed[k.rank] = nil // told of together
	}
	slices.SortStableFunc(failed, func(a, b error) int { return cmp.Compare(bySignal(b), bySignal(a)) })
	j.err = errors.Join(slices.Concat(failed, []error{j.killedError()})...)
	close(j.lines)
}

// answer notes that the rank has closed its output: the kernel may take seconds more to end
// its process, where the disk is busy.
func (j *demoJob) answer(rank int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answered[rank] = true
}

// failure says how a rank's worker ended that did not end well. The caller holds the lock.
func (j *demoJob) failure(rank int, err error) error {
	if j.ended && endedBy(err) == syscall.SIGKILL {
		return fmt.Errorf("end worker of rank %d: its output ended, and it did not within %v; killed", rank, j.grace)
	}
	return fmt.Errorf("run worker of rank %d: %w", rank, err)
}

// bySignal is 1 for a worker that a signal ended, other than ours: the others mostly
// end since it is gone, so that it is told of first.
func bySignal(err error) int {
	if s := endedBy(err); s != 0 && s != syscall.SIGTERM {
		return 1
	}
	return 0
}

// endedBy returns the signal that ended a worker; 0 where none did.
func endedBy(err error) syscall.Signal {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return 0
}

// signal sends a signal to every worker that has not been waited for.
func (j *demoJob) signal(s syscall.Signal) {
	for _, cmd := range j.cmds {
		_ = cmd.Process.Signal(s) // an error says that it has ended
	}
}

// How long a rank may take to end after a signal: its last step, and the end of its
// connections. PyTorch's agree on their end every few steps, which may be of seconds.
const (
	demoGrace  = 5 * time.Second
	torchGrace = 20 * time.Second
)

func (o *demoOptions) grace() time.Duration {
	if o.torch != "" {
		return torchGrace
	}
	return demoGrace
}

// calledOff reports whether the ranks were to end before they had begun, or PyTorch's were to
// stand still. They cannot be asked then: a signal ends them, or the loss of another rank, and
// that is what was wanted.
func (j *demoJob) calledOff() bool { return j.asked.Load() && (j.torch && j.hangs || !j.began.Load()) }

// stop asks all workers to end, and kills those that do not.
func (j *demoJob) stop() *time.Timer {
	j.asked.Store(true)
	j.signal(syscall.SIGTERM)
	return time.AfterFunc(j.grace, j.kill)
}

// killedRank is a worker that did not end when it was asked to.
type killedRank struct {
	rank    int64
	stopped bool // by SIGSTOP or the like; the others may only have waited for it
}

func (j *demoJob) kill() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	for rank, cmd := range j.cmds {
		if !j.answered[rank] {
			j.killed = append(j.killed, killedRank{int64(rank), isStopped(cmd.Process.Pid)})
		}
	}
	j.signal(syscall.SIGKILL)
}

func (j *demoJob) killedError() error {
	if len(j.killed) == 0 {
		return nil
	}
	var all, stopped []int64
	for _, k := range j.killed {
		all = append(all, k.rank)
		if k.stopped {
			stopped = append(stopped, k.rank)
		}
	}
	text := ""
	if len(stopped) > 0 {
		text = fmt.Sprintf(" (a signal had stopped %s: the others wait for it)", report.Ranks(stopped))
	}
	return fmt.Errorf("end the workers: got no answer of %s within %v%s; killed", report.Ranks(all), j.grace, text)
}

// isStopped reports whether the process stands still by a signal.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") T "))
}
