// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Command is a program that says versions.
type Command struct {
	// Path is its file, or its name where it is looked for in PATH.
	Path string
	// Timeout is how long it may take.
	Timeout time.Duration
}

// pipesWait is for how long the end of what a killed program's children write is waited for.
const pipesWait = time.Second

// maxComplaint bounds what is kept of what a program complains of, bytes.
const maxComplaint = 1024

// errAbsent: there is no such program, which is no fault.
var errAbsent = errors.New("no such program")

// run returns what the program prints, at most limit bytes. It may not return for as long as the
// kernel does not let a killed program go, as a driver that is stuck does: who calls it must be
// able to go on without it.
func (c *Command) run(ctx context.Context, limit int, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Path, args...)
	out, complaint := &bounded{limit: limit, over: cancel}, &bounded{limit: maxComplaint}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, complaint, pipesWait
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	err := cmd.Run()
	said, full := out.content()
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return nil, errAbsent
	case full:
		return nil, fmt.Errorf("run %s: got more than %d bytes; want at most that", c.Path, limit)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("run %s: got no end in %v: %w", c.Path, c.Timeout, ctx.Err())
	case err != nil:
		why, _ := complaint.content()
		return nil, fmt.Errorf("run %s: %w: %.200q", c.Path, err, strings.Join(strings.Fields(string(why)+" "+string(said[:min(len(said), maxComplaint)])), " "))
	}
	return said, nil
}

// bounded keeps what is written up to a limit. What children of a killed program write may come
// while it is read.
type bounded struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	limit int
	full  bool
	over  func() // called when more comes; nil: the rest is dropped
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := b.limit - b.buf.Len()
	if len(p) <= room {
		return b.buf.Write(p)
	}
	b.full = true
	b.buf.Write(p[:room])
	if b.over != nil {
		b.over()
	}
	return len(p), nil
}

// content is what was written, and whether there was more.
func (b *bounded) content() (out []byte, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes()), b.full
}

// mismatched is what nvidia-smi complains of where NVML's library is of another version than the
// module that is loaded.
const mismatched = "Driver/library version mismatch"

// SMI asks nvidia-smi. That it is not there is not an error, and nothing is known then.
func SMI(ctx context.Context, c Command) *Read {
	out, err := c.run(ctx, MaxSMI, "-q", "-x")
	switch {
	case errors.Is(err, errAbsent):
		return &Read{}
	case err != nil && strings.Contains(err.Error(), mismatched):
		return &Read{Mismatches: []Mismatch{{model.FactDriverMismatch, err.Error()}}}
	case err != nil:
		return &Read{Problems: []string{err.Error()}}
	}
	r, err := ParseSMI(out)
	if err != nil {
		return &Read{Problems: []string{err.Error()}}
	}
	return r
}

// maxManager bounds what nv-fabricmanager says of its version, a line.
const maxManager = 4096

// managerVersion is in what nv-fabricmanager --version prints: "Fabric Manager version is : 550.90.07".
var managerVersion = regexp.MustCompile(`(?i)version\D{0,16}(\d+\.\d+(?:\.\d+)*)`)

// FabricManager asks nv-fabricmanager. That it is not there is not an error.
func FabricManager(ctx context.Context, c Command) *Read {
	out, err := c.run(ctx, maxManager, "--version")
	r := &Read{}
	switch {
	case errors.Is(err, errAbsent):
		return r
	case err != nil:
		r.problem(err)
		return r
	}
	m := managerVersion.FindSubmatch(out)
	if m == nil {
		r.problem(fmt.Errorf("read version of %s: got %.80q; want a version", c.Path, out))
		return r
	}
	r.add(Version{Domain: model.VersionFabricManager, Version: string(m[1]), Witness: c.Path + " --version"})
	return r
}
