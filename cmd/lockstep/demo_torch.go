// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// anyPython is the value of --torch without one.
const anyPython = "default"

// torchFaults are what the training program knows of. After exit and mismatch, Gloo ends the
// others with an error, so that there is nothing that stands still.
var torchFaults = []string{"none", "compute", "compile", "dataloader", "gc", "checkpoint", "hang"}

var torchFaultTold = map[string]string{
	"none":       "nothing ails any of them",
	"compute":    "rank %d computes more than the others in every step",
	"compile":    "rank %d has batches of other sizes in every step, and compiles for each",
	"dataloader": "rank %d reads its data from a store that is far away",
	"gc":         "rank %d collects its garbage in every step",
	"checkpoint": "rank %d saves checkpoints often, to a slow store",
	"hang":       "rank %d waits for its 61st batch, which never comes, and the job stands still",
}

// faults are those to choose from.
func (o *demoOptions) faults() []string {
	if o.torch != "" {
		return torchFaults
	}
	return demoFaults
}

// checkTorch returns an error where a flag is for the C worker alone.
func (o *demoOptions) checkTorch() error {
	switch {
	case o.witness != witnessScopes:
		return fmt.Errorf("check --witness: got %q with --torch; want %s, which is what there is of PyTorch on a CPU", o.witness, witnessScopes)
	case o.from != 0:
		return fmt.Errorf("check --fault-from: got %d with --torch; want none", o.from)
	case o.bare:
		return fmt.Errorf("check --no-pace: got it with --torch; want one of them")
	}
	return nil
}

// Where the source tree has what a demo with PyTorch runs.
const (
	trainerFile = "demo/torch/train.py"
	packagesDir = "inject/python"
	ownPython   = ".venv/bin/python"
)

// torchParts are what a demo with PyTorch runs: an interpreter, our training
// program, and the folder of our package.
type torchParts struct{ python, trainer, packages string }

// findTorch looks for the sources beside the folder of the executables, or below
// the working directory.
func (o *demoOptions) findTorch(bin string) (p torchParts, err error) {
	root, err := sourceTree(filepath.Dir(bin))
	if err != nil {
		return p, err
	}
	p = torchParts{o.torch, filepath.Join(root, trainerFile), filepath.Join(root, packagesDir)}
	if o.torch == anyPython {
		p.python = filepath.Join(root, ownPython)
		if _, err := os.Stat(p.python); err != nil {
			p.python = "python3"
		}
	}
	return p, hasTorch(p.python)
}

func sourceTree(beside string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", trainerFile, err)
	}
	for _, root := range []string{beside, here} {
		if st, err := os.Stat(filepath.Join(root, trainerFile)); err == nil && st.Mode().IsRegular() {
			return root, nil
		}
	}
	return "", fmt.Errorf("find %s: got none in %s or %s; want the source tree there: run it from its root", trainerFile, beside, here)
}

// torchPatience is how long an interpreter may take to say what it has.
const torchPatience = 30 * time.Second

// hasTorch asks the interpreter, without loading PyTorch.
func hasTorch(python string) error {
	ctx, cancel := context.WithTimeout(context.Background(), torchPatience)
	defer cancel()
	const ask = `import importlib.util as u; print("yes" if u.find_spec("torch") else "no")`
	said, err := exec.CommandContext(ctx, python, "-c", ask).Output()
	const wanted = "want an interpreter that has it: `make run-torch` in the source tree makes one in .venv, or name one with --torch=PYTHON"
	switch {
	case err != nil:
		return fmt.Errorf("find PyTorch: run %s: %w; %s", python, err, wanted)
	case strings.TrimSpace(string(said)) != "yes":
		return fmt.Errorf("find PyTorch: got none of %s; %s", python, wanted)
	}
	return nil
}

// torchRing has room for the threads of PyTorch: 16 MiB per rank.
var torchRing = []string{"LOCKSTEP_RING_LANES=32", "LOCKSTEP_RING_RECORDS=4096", "LOCKSTEP_RING_SLOTS=1024"}

// command is what rank runs.
func (o *demoOptions) command(rank int, parts *demoParts, dir string) (program string, args []string) {
	if o.torch == "" {
		return parts.worker, o.workerArgs(rank, dir)
	}
	return parts.torch.python, o.torchArgs(rank, &parts.torch)
}

func (o *demoOptions) torchArgs(rank int, p *torchParts) []string {
	args := []string{"-m", "lockstep_scope", p.trainer, "--steps", strconv.FormatInt(o.steps, 10)}
	if o.fault != "none" {
		args = append(args, "--fault", o.fault, "--fault-rank", strconv.Itoa(o.rank))
	}
	if rank == 0 {
		args = append(args, "--progress")
	}
	return append(args, o.args...)
}

// torchEnv is what the package and PyTorch have to know; all ranks meet at port.
func torchEnv(parts *demoParts, port int) []string {
	path := parts.torch.packages
	if more := os.Getenv("PYTHONPATH"); more != "" {
		path += string(os.PathListSeparator) + more
	}
	return []string{
		"LOCKSTEP_LIBRARY=" + parts.plugin, "PYTHONPATH=" + path, "PYTHONUNBUFFERED=1",
		"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + strconv.Itoa(port),
		"OMP_NUM_THREADS=1", // the ranks share few cores
	}
}

// janitor removes a directory when this process is gone, however it went: our own
// workers do so themselves, and PyTorch's know nothing of it.
type janitor struct {
	cmd  *exec.Cmd
	gate io.Closer // closed with this process
}

func startJanitor(dir string) (*janitor, error) {
	const wait = `trap "" INT TERM HUP; cat >/dev/null; rm -rf -- "$1"`
	j := &janitor{cmd: exec.CommandContext(context.Background(), "sh", "-c", wait, "sh", dir)}
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	gate, err := j.cmd.StdinPipe()
	if err == nil {
		err = j.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start who cleans up: %w", err)
	}
	j.gate = gate
	return j, nil
}

// end has it remove the directory now.
func (j *janitor) end() {
	_ = j.gate.Close()
	_ = j.cmd.Wait() // what it could not remove is in a directory for temporary files
}

// freePort returns a port that nobody listened on just now.
func freePort() (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a port for the ranks to meet at: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// watchedBy says who sees what the ranks do.
func (o *demoOptions) watchedBy() string {
	if o.torch != "" {
		return "The program calls nothing of ours; lockstep_scope's hooks tell what it does, and a collector in this process reads it."
	}
	return "A collector in this process reads what the profiler plugin sees in each of them."
}
