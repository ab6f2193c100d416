// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// facts is what a program wrote down about what it did (programs/cupti.py).
type facts struct {
	PID      int         `json:"pid"`
	Plan     string      `json:"plan"`
	Mode     string      `json:"mode"`
	Error    string      `json:"error"`
	UUID     string      `json:"uuid"`
	Done     int64       `json:"done_real"` // when it was through; 0: it was not
	Resumed  *int        `json:"resumed"`
	Windows  []window    `json:"windows"`
	Brackets [][2]uint64 `json:"brackets"`
	Blocks   []block     `json:"blocks"`
	Turns    [][]float64 `json:"turns"`
}

// window is a stretch of equal work between two stamps of MONOTONIC_RAW, ns.
type window struct {
	Kind   string  `json:"kind"` // ours, theirs, theirs-unpaused, theirs-first
	Steps  int     `json:"steps"`
	Begin  uint64  `json:"begin_raw"`
	End    uint64  `json:"end_raw"`
	Events float64 `json:"events_ms"` // its steps by CUDA events, ms; 0: none
	Trace  string  `json:"trace"`     // file of the other profiler
	Pause  int     `json:"pause"`
	Resume []int   `json:"resume"` // results, until one was 0
	Status string  `json:"status"` // of the library at its end
}

// block is a row of steps with recording on (A) or paused (B).
type block struct {
	Kind  string    `json:"kind"`
	Code  int       `json:"code"`
	Begin uint64    `json:"begin_raw"` // MONOTONIC_RAW, ns, as the first step begins
	End   uint64    `json:"end_raw"`   // after the last
	Took  []float64 `json:"took"`      // ns of each step
}

// resultText names a result of CUPTI.
func resultText(result uint32) string {
	if result == 39 {
		return " (39: another client holds CUPTI's one subscription)"
	}
	return fmt.Sprintf(" (result %d)", result)
}

// resumeText returns how the calls of resume ended.
func (w *window) resumeText() string {
	if len(w.Resume) == 0 {
		return "not asked"
	}
	last := w.Resume[len(w.Resume)-1]
	switch {
	case last == 0:
		return fmt.Sprintf("granted at try %d", len(w.Resume))
	case last < 0:
		return fmt.Sprintf("%d tries came too late", len(w.Resume))
	}
	return fmt.Sprintf("refused %d times", len(w.Resume)) + resultText(uint32(last))
}

// cuptiStatus returns what the library reported of CUPTI at the window's end.
func (w *window) cuptiStatus() string {
	if _, status, ok := strings.Cut(w.Status, "CUPTI: "); ok {
		return status
	}
	return "unknown"
}

const (
	maxFacts = 8 << 20   // bytes
	maxTrace = 256 << 20 // bytes
	maxRing  = 64 << 20  // bytes: four times what the rings of the programs have
)

func readFacts(folder string) (*facts, error) {
	b, err := kit.ReadFile(filepath.Join(folder, "facts.json"), maxFacts)
	if err != nil {
		return nil, fmt.Errorf("read facts of the program: %w", err)
	}
	var f facts
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("read facts of the program: %w", err)
	}
	return &f, nil
}

// readTrace returns what another profiler recorded, as torch.profiler exports it, and how
// much of it is without the call that launched it.
func readTrace(ctx context.Context, path string, most int64) (t tally, without int, err error) {
	options := kineto.DefaultOptions()
	options.MaxBytes = most
	trace, err := kineto.ParseFile(ctx, path, options)
	if err != nil {
		return nil, 0, fmt.Errorf("read trace: %w", err)
	}
	t = tally{}
	for op := range trace.Ops() {
		name := copyName
		switch {
		case op.Kind == model.KindCompute || op.Kind.IsComm():
			name = nestedName(op.Name)
		case op.Kind != model.KindCopy:
			continue
		case strings.HasPrefix(op.Name, "Memset"):
			name = setName
		}
		t.add(name, uint64(op.End-op.Start))
		if !op.Launch.OK {
			without++
		}
	}
	return t, without, nil
}
