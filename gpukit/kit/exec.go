// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// grace is how long a program has after SIGTERM before it is killed; tests shorten it.
var grace = 2 * time.Second

// maxOutput bounds what is kept of each stream of a program, bytes: the start and
// the end of it, half each.
const maxOutput = 1 << 20

// Why a program was ended before it was done.
var (
	// ErrLimit: its own time limit.
	ErrLimit = errors.New("got no end within its time limit")
	// ErrNoTime: the time of its part, or of the whole run, which is no fault of it.
	ErrNoTime = errors.New("the time that was left ran out")
)

// Command is a program to run.
type Command struct {
	Path  string
	Args  []string
	Env   []string      // "NAME=value", beside the clean environment
	Dir   string        // empty: the part's scratch folder
	Limit time.Duration // 0: the part's own
	// Private keeps its output out of the log, which leaves the machine.
	Private bool
}

// Result is what a program left.
type Result struct {
	Stdout, Stderr string
	Took           time.Duration
}

// Run runs a program in a process group of its own, and kills the group when the
// program, its limit or ctx has ended. The error reports how it ended, with the last
// line that it wrote to stderr; it is ErrLimit or ErrNoTime where that is why.
func (k *Kit) Run(ctx context.Context, c Command) (*Result, error) {
	p, err := k.Start(ctx, c)
	if err != nil {
		return &Result{}, err
	}
	return p.Wait()
}

// Process is a program that runs.
type Process struct {
	cmd            *exec.Cmd
	ctx            context.Context
	cancel         context.CancelFunc
	limit          time.Duration
	began          time.Time
	stdout, stderr ends
	log            *Log // nil: none
	once           sync.Once
	result         Result
	err            error
}

// Start starts a program; Wait must be called.
func (k *Kit) Start(ctx context.Context, c Command) (*Process, error) {
	p := &Process{log: k.Log, limit: c.Limit, began: time.Now()}
	if c.Private {
		p.log = nil
	}
	if c.Limit > 0 {
		p.ctx, p.cancel = context.WithTimeoutCause(ctx, c.Limit, ErrLimit)
	} else {
		p.ctx, p.cancel = context.WithCancel(ctx)
	}
	p.cmd = exec.CommandContext(p.ctx, c.Path, c.Args...)
	p.cmd.Env = append(append(CleanEnv(os.Environ()), "TMPDIR="+k.Work), c.Env...)
	p.cmd.Dir = c.Dir
	if c.Dir == "" {
		p.cmd.Dir = k.Work
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	ownGroup(p.cmd)
	p.cmd.Cancel = func() error { return terminate(p.cmd) }
	p.cmd.WaitDelay = grace
	if err := p.cmd.Start(); err != nil {
		if errors.Is(context.Cause(p.ctx), context.DeadlineExceeded) {
			err = ErrNoTime
		}
		p.cancel()
		return nil, fmt.Errorf("start %s: %w", filepath.Base(c.Path), err)
	}
	return p, nil
}

// Pid returns the program's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Stop asks the program to end, as Ctrl-C does in a terminal; Wait returns how it ended.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", filepath.Base(p.cmd.Path), err)
	}
	return nil
}

// End stops the program, waits for at most limit and returns how it ended.
func (p *Process) End(limit time.Duration) error {
	if err := p.Stop(); err != nil {
		return err
	}
	late := time.AfterFunc(limit, p.cancel)
	defer late.Stop()
	_, err := p.Wait()
	return err
}

// Wait returns when the program has ended and its process group is gone.
func (p *Process) Wait() (*Result, error) {
	p.once.Do(func() {
		err := p.cmd.Wait()
		over := context.Cause(p.ctx)
		killGroup(p.cmd)
		p.cancel()
		p.result = Result{Stdout: p.stdout.String(), Stderr: p.stderr.String(), Took: time.Since(p.began)}
		p.err = p.ended(err, over)
		if p.log != nil {
			p.log.add(p.cmd, &p.result, p.err)
		}
	})
	return &p.result, p.err
}

func (p *Process) ended(err, over error) error {
	name := filepath.Base(p.cmd.Path)
	for _, arg := range p.cmd.Args[1:] {
		if strings.HasSuffix(arg, ".py") {
			name = filepath.Base(arg) // the last: one may start another
		}
	}
	switch {
	case errors.Is(over, ErrLimit):
		return fmt.Errorf("run %s: %w, after %.0f s; want less%s", name, ErrLimit, p.result.Took.Seconds(), p.last())
	case errors.Is(over, context.DeadlineExceeded):
		return fmt.Errorf("run %s: %w after %.0f s", name, ErrNoTime, p.result.Took.Seconds())
	case over != nil:
		return fmt.Errorf("run %s: %w", name, over)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil // it ended; a child of its kept the output open
	case err != nil:
		return fmt.Errorf("run %s: %w%s", name, err, p.last())
	}
	return nil
}

// last returns the last line of stderr, which for Python is the exception; of stdout,
// where nvidia-smi has its reason, if that is all there is.
func (p *Process) last() string {
	text := p.result.Stderr
	if strings.TrimSpace(text) == "" {
		text = p.result.Stdout
	}
	lines := strings.FieldsFunc(text, func(c rune) bool { return c == '\n' })
	if len(lines) == 0 {
		return ""
	}
	return ": " + lines[len(lines)-1]
}

// own are prefixes of variables that change what is measured.
var own = []string{
	"LOCKSTEP_", "NCCL_", "TORCH_", "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "PYTHONPATH=",
	"RANK=", "LOCAL_RANK=", "WORLD_SIZE=", "MASTER_ADDR=", "MASTER_PORT=", "SLURM_", "OMPI_", "PMI_",
}

// CleanEnv returns the environment without what would change the checks.
func CleanEnv(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(v, prefix) })
	})
}

// ends keeps the first and the last of what is written to it.
type ends struct {
	mu    sync.Mutex
	first []byte
	last  []byte
	lost  int64
}

// Write never fails.
func (e *ends) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(b)
	if room := maxOutput/2 - len(e.first); room > 0 {
		take := min(room, len(b))
		e.first = append(e.first, b[:take]...)
		b = b[take:]
	}
	e.last = append(e.last, b...)
	if over := len(e.last) - maxOutput/2; over > 0 {
		e.lost += int64(over)
		e.last = bytes.Clone(e.last[over:])
	}
	return n, nil
}

// String returns what was kept.
func (e *ends) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lost == 0 {
		return string(e.first) + string(e.last)
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", e.first, e.lost, e.last)
}
