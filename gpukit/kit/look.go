// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// lookLimit bounds each program that is asked: PyTorch's first start on a cold disk
// takes half a minute.
const lookLimit = 90 * time.Second

// answer is what programs/machine.py prints.
type answer struct {
	Python     string `json:"python"`
	Libc       string `json:"libc"`
	Torch      *Torch `json:"torch"`
	GPU        *GPU   `json:"gpu"`
	Reason     string `json:"reason"`
	NCCLReason string `json:"nccl_reason"`
	Unusable   string `json:"unusable"` // why the programs cannot run in it; empty where they can
}

// Look finds out what the machine has, and returns it as facts. It sets Torch, GPU,
// Reason and Busy. What is missing is a fact, too, and no error.
func (k *Kit) Look(ctx context.Context) []report.Fact {
	var facts []report.Fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, report.NewFact(name, value))
		}
	}
	a := k.ask(ctx)
	if k.GPU != nil {
		add("gpu", fmt.Sprintf("%d x %s", k.GPU.Count, k.GPU.Name))
		add("gpu memory", fmt.Sprintf("%d MiB, %d free", k.GPU.MemoryMiB, k.GPU.FreeMiB))
		add("compute capability", k.GPU.Capability)
	} else {
		add("gpu", "none: "+k.Reason)
	}
	add("driver", k.smi(ctx, "driver_version"))
	// Two processes cannot share a device in an exclusive mode.
	add("modes and clocks", k.smi(ctx, "compute_mode,persistence_mode,mig.mode.current,clocks.sm,clocks.max.sm"))
	k.Busy = k.busy(ctx)
	add("busy", k.Busy)
	if k.Torch != nil {
		add("pytorch", k.Torch.Version)
		add("cuda of pytorch", k.Torch.CUDA)
		add("nccl", first(k.Torch.NCCL, a.NCCLReason, "none found"))
		add("cupti", first(k.Torch.CUPTI, "none found beside PyTorch"))
	} else {
		add("pytorch", "none: "+k.Reason)
	}
	add("python", first(a.Python, "none"))
	add("c library", a.Libc)
	add("kernel", kernel())
	add("system", system())
	add("processors", fmt.Sprintf("%d %s", runtime.NumCPU(), runtime.GOARCH))
	return facts
}

// ask runs programs/machine.py.
func (k *Kit) ask(ctx context.Context) answer {
	var a answer
	if k.Python == "" {
		k.Reason = "no python3 on the PATH; --python names one"
		return a
	}
	r, err := k.Run(ctx, Command{Path: k.Python, Args: []string{k.Program("machine.py")}, Limit: lookLimit})
	if err == nil {
		err = json.Unmarshal([]byte(LastLine(r.Stdout)), &a)
	}
	if err == nil && a.Unusable != "" {
		err = errors.New(a.Unusable)
	}
	if err != nil {
		k.Broken = true
		k.Reason = "ask PyTorch of " + k.Python + ": " + err.Error()
		k.Python = "" // so that no part tries in vain
		return a
	}
	k.Torch, k.GPU, k.Reason = a.Torch, a.GPU, a.Reason
	if k.GPU != nil {
		k.Scrub.Learn(k.GPU.UUID)
	}
	if k.Torch != nil && k.GPU == nil {
		k.Reason = k.Torch.Reason
	}
	return a
}

// smiFolders may have nvidia-smi where the PATH does not name them: a driver that is
// mounted into a container or a small virtual machine.
var smiFolders = []string{"/usr/local/nvidia/bin"}

// SMI returns the path of nvidia-smi; empty where there is none.
func SMI() string {
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		if path, err = filepath.Abs(path); err == nil {
			return path
		}
	}
	for _, dir := range smiFolders {
		if path, err := exec.LookPath(filepath.Join(dir, "nvidia-smi")); err == nil {
			return path
		}
	}
	return ""
}

// smiLimit bounds one question to nvidia-smi, which wakes each GPU first.
const smiLimit = 15 * time.Second

// smi asks nvidia-smi for fields of the first GPU; empty where it has no answer. One that
// failed is not asked again.
func (k *Kit) smi(ctx context.Context, field string) string {
	path := SMI()
	if path == "" || k.smiFailed {
		return ""
	}
	r, err := k.Run(ctx, Command{Path: path, Args: []string{"--query-gpu=" + field, "--format=csv,noheader,nounits"}, Limit: smiLimit})
	if err != nil {
		k.smiFailed = true
		return err.Error()
	}
	line, _, _ := strings.Cut(r.Stdout, "\n")
	return strings.TrimSpace(line)
}

// busyShare is how much of a GPU's time or memory others may use before figures are
// not to be trusted, percent.
const busyShare = 5

// busyTries is how often the GPU is asked for its load, since that of a program which
// has just ended still shows in the first answers; busyEvery is the time between, which
// tests shorten.
const busyTries = 3

var busyEvery = time.Second

// busy reports whether others use the GPU; empty where it is idle or nothing is known.
func (k *Kit) busy(ctx context.Context) string {
	if k.GPU == nil {
		return ""
	}
	used := 100 * (1 - float64(k.GPU.FreeMiB)/float64(max(k.GPU.MemoryMiB, 1)))
	load := k.load(ctx)
	for range busyTries - 1 {
		if load <= busyShare {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(busyEvery):
			load = k.load(ctx)
		}
	}
	if load <= busyShare && used <= busyShare {
		return ""
	}
	return fmt.Sprintf("other programs use it: %.0f %% of its time, %.0f %% of its memory; costs and times are not to be trusted", load, used)
}

// load returns how much of its time the GPU is used, percent; 0 where that is unknown.
func (k *Kit) load(ctx context.Context) float64 {
	load, err := strconv.ParseFloat(k.smi(ctx, "utilization.gpu"), 64)
	if err != nil {
		return 0
	}
	return load
}

func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// system returns the distribution's name.
func system() string {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"`)
		}
	}
	return ""
}

// LastLine returns the last line that is not empty: libraries print what they like
// before it.
func LastLine(s string) string {
	s = strings.TrimRight(s, "\n ")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// ErrNoKit is returned by Check for a folder that is no kit.
var ErrNoKit = errors.New("no GPU kit")

// Check returns an error where the folder is no kit at all. What it lacks else is found by
// Verify.
func (k *Kit) Check() error {
	for _, path := range []string{filepath.Join(k.Dir, manifestName), k.Program("machine.py")} {
		if exists(path) {
			return nil
		}
	}
	return fmt.Errorf("open kit: %w: got neither %s nor programs in %s; want a folder that `make gpu-kit` made", ErrNoKit, manifestName, k.Dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
