// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/regular"
)

// PipeSuffix ends the names of the pipes through which PyTorch takes requests for dumps:
// TORCH_NCCL_DEBUG_INFO_PIPE_FILE, the rank, and this.
const PipeSuffix = ".pipe"

// maxPipes bounds the pipes that one request is written to.
const maxPipes = 1 << 12

// PipeResult is what came of a request through one rank's pipe.
type PipeResult struct {
	Path string
	Rank int64
	Err  error
}

// RequestByPipe asks every process for a dump whose pipe's name begins so. It never waits.
func RequestByPipe(prefix string) ([]PipeResult, error) {
	paths, err := filepath.Glob(escape(prefix) + "[0-9]*" + PipeSuffix)
	if err != nil {
		return nil, fmt.Errorf("find pipes: %w", err)
	}
	var out []PipeResult
	for _, path := range paths {
		rank, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(path, prefix), PipeSuffix), 10, 64)
		if err != nil {
			continue // of somebody else
		}
		if len(out) == maxPipes {
			return out, fmt.Errorf("find pipes: got %d for %q; want at most %d", len(paths), prefix, maxPipes)
		}
		out = append(out, PipeResult{Path: path, Rank: rank, Err: request(path)})
	}
	slices.SortFunc(out, func(a, b PipeResult) int { return cmp.Compare(a.Rank, b.Rank) })
	return out, nil
}

// request writes the byte that asks for a dump; PyTorch takes any.
func request(path string) error {
	f, err := os.OpenFile(path, pipeFlags, 0)
	switch {
	case noReader(err):
		return fmt.Errorf("open pipe %s: nobody reads it: the process is gone, or its heartbeat monitor is", path)
	case err != nil:
		return fmt.Errorf("open pipe: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing is held back
	info, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("open pipe: %w", err)
	case info.Mode().Type() != os.ModeNamedPipe:
		return fmt.Errorf("open pipe %s: got %s; want a named pipe", path, regular.Kind(info.Mode()))
	}
	if err := writeNow(f, []byte{'1'}); err != nil {
		return fmt.Errorf("write to pipe %s: %w", path, err)
	}
	return nil
}
