package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// demoJob is the worker processes of one demo.
type demoJob struct {
	cmds    []*exec.Cmd
	readers []chan struct{} // closed when the output of that rank has been read
	lines   chan demoLine   // closed when all have ended
	err     error           // why the job failed, once lines is closed
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
	j := &demoJob{lines: make(chan demoLine, 64)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := j.start(o, parts, dir, stderr)
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

func (j *demoJob) start(o *demoOptions, parts demoParts, dir string, stderr io.Writer) error {
	out := &lockedWriter{w: stderr}
	for rank := range o.ranks {
		cmd := exec.CommandContext(context.Background(), parts.worker, o.workerArgs(rank, dir)...)
		cmd.Env = append(demoEnviron(os.Environ()), o.workerEnv(rank, dir, parts.plugin)...)
		cmd.Stderr = out
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
	if o.bare {
		args = append(args, "--no-pace")
	}
	return append(args, o.args...)
}

func (o *demoOptions) workerEnv(rank int, dir, plugin string) []string {
	r := strconv.Itoa(rank)
	return append([]string{
		"NCCL_PROFILER_PLUGIN=" + plugin,
		"LOCKSTEP_DIR=" + filepath.Join(dir, "rings"), "LOCKSTEP_LEVEL=" + o.level,
		"LOCKSTEP_JOB_NAME=demo", "LOCKSTEP_JOB_ID=" + filepath.Base(dir),
		"RANK=" + r, "LOCAL_RANK=" + r, "WORLD_SIZE=" + strconv.Itoa(o.ranks),
	}, demoRing...)
}

// demoEnviron is the environment without what would tell a worker that it is
// part of another job.
func demoEnviron(env []string) (kept []string) {
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == "NCCL_DEBUG" || name == "LOCKSTEP_DEBUG" || name == "LOCKSTEP_EVENT_MASK":
		case strings.HasPrefix(name, "LOCKSTEP_") || strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "SLURM_") ||
			strings.HasPrefix(name, "OMPI_") || strings.HasPrefix(name, "PMI_") || strings.HasPrefix(name, "TORCHELASTIC_") ||
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
				j.lines <- l
			}
		}
	}()
}

// wait waits for all workers. The first that fails takes the others down: they
// could only wait for it.
func (j *demoJob) wait() {
	var errs []error
	var mu sync.Mutex
	var all sync.WaitGroup
	for rank, cmd := range j.cmds {
		all.Go(func() {
			<-j.readers[rank] // Wait closes the pipe
			if err := cmd.Wait(); err != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("run worker of rank %d: %w", rank, err))
				mu.Unlock()
				j.signal(syscall.SIGTERM)
			}
		})
	}
	all.Wait()
	j.err = errors.Join(errs...)
	close(j.lines)
}

// signal sends a signal to every worker that has not been waited for.
func (j *demoJob) signal(s syscall.Signal) {
	for _, cmd := range j.cmds {
		_ = cmd.Process.Signal(s) // an error says that it has ended
	}
}

// demoGrace is how long a worker may take to end after a signal: its last step,
// and the end of its connections.
const demoGrace = 5 * time.Second

// stop asks all workers to end, and kills those that do not.
func (j *demoJob) stop() *time.Timer {
	j.signal(syscall.SIGTERM)
	return time.AfterFunc(demoGrace, func() { j.signal(syscall.SIGKILL) })
}

// lockedWriter lets several processes write to one place.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
