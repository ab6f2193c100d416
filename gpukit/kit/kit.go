// SPDX-License-Identifier: Apache-2.0

// Package kit holds what the parts of the GPU kit share: where its files are, what is
// known of the machine, and the running of programs with a time limit.
package kit

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/gpukit/scrub"
)

// GPU is the device that the parts use: the first that PyTorch sees.
type GPU struct {
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
	Capability string `json:"capability"` // "9.0"
	MemoryMiB  int64  `json:"memory_mib"`
	FreeMiB    int64  `json:"free_mib"`
	Count      int    `json:"count"` // of all devices
}

// Torch is the machine's PyTorch.
type Torch struct {
	Version string `json:"version"` // "2.11.0+cu130"
	CUDA    string `json:"cuda"`    // that it was built for; empty: none
	NCCL    string `json:"nccl"`    // of torch.cuda.nccl.version(), "2.28.9"; empty: none
	CUPTI   string `json:"cupti"`   // path of the libcupti of its packages; empty: none found
	LibNCCL string `json:"libnccl"` // path; empty: none found
	Reason  string `json:"reason"`  // why it uses no GPU; empty where it does
}

// Kit is what a part is given. Fields do not change while parts run.
type Kit struct {
	Dir    string // the kit's folder
	Out    string // where report and fixtures go
	Work   string // scratch of the part, removed after the run; on a file system in memory where there is one
	Python string // the interpreter; empty: none found
	Torch  *Torch // nil: no PyTorch
	GPU    *GPU   // nil: no device that PyTorch can use
	Reason string // one line: why Torch or GPU is nil
	Broken bool   // Python did not answer at all
	// Busy reports that other programs use the GPU, so that times and costs are not to be
	// trusted; empty where it is idle, or nothing is known.
	Busy string

	// Log gets the output of programs, each with a heading.
	Log *Log

	// Scrub removes what names the machine from all that leaves it.
	Scrub *scrub.Scrubber

	smiFailed bool // nvidia-smi did not answer Look

	fixtures *fixtures
	lockstep string // where it was unpacked to; empty: in Dir
}

// New returns a kit without a machine; Look fills that in.
func New(dir, out, work string) *Kit {
	return &Kit{Dir: dir, Out: out, Work: work, Log: &Log{}, Scrub: scrub.ThisMachine(), fixtures: &fixtures{dir: out, max: MaxFixtureBytes}}
}

// With returns a copy for a part that has the scratch folder named after it.
func (k *Kit) With(part string) (*Kit, error) {
	c := *k
	c.Work = filepath.Join(k.Work, part)
	if err := os.MkdirAll(c.Work, 0o700); err != nil {
		return nil, fmt.Errorf("make scratch folder: %w", err)
	}
	return &c, nil
}

// Right returns the status of a check that came out right on this machine.
func (k *Kit) Right() report.Status {
	if k.GPU != nil {
		return report.Shown
	}
	return report.StandIn
}

// Program returns the path of a Python program of the kit.
func (k *Kit) Program(name string) string { return filepath.Join(k.Dir, "programs", name) }

// Lockstep returns the path of the command.
func (k *Kit) Lockstep() string {
	if k.lockstep != "" {
		return k.lockstep
	}
	return filepath.Join(k.Dir, "bin", "lockstep")
}

// Plugin returns the path of the library that NCCL and libcuda load.
func (k *Kit) Plugin() string { return filepath.Join(k.Dir, "lib", "libnccl-profiler-lockstep.so") }

// StandIn returns the path of a stand-in, such as libcupti-standin.so.
func (k *Kit) StandIn(name string) string { return filepath.Join(k.Dir, "standin", name) }

// Packages returns the folder with the Python package lockstep_scope.
func (k *Kit) Packages() string { return filepath.Join(k.Dir, "python") }
