// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// keep keeps the ring, the facts and the first trace of each mode, and of all other
// programs what they left, if there is room. A file that cannot be kept is a failed
// check, and costs no other file.
func (r *runner) keep() {
	var entries, extra []kit.Entry
	for _, name := range slices.Sorted(maps.Keys(r.programs)) {
		g := r.programs[name]
		if !g.over() {
			continue
		}
		files, err := leftBy(g)
		if !slices.Contains(modes, name) || g.ring == nil || g.err != nil {
			extra = append(extra, files...) // which it may have failed to write
			continue
		}
		entries = append(entries, files...)
		if err != nil {
			r.part.Add("fixture", report.Failed, err.Error())
		}
	}
	r.kit.Keep(r.part, "cupti", extra, entries...)
}

// leftBy returns what can be read of a program, and why the rest cannot.
func leftBy(g *program) ([]kit.Entry, error) {
	var entries []kit.Entry
	var errs []error
	for _, read := range g.files() {
		e, err := read.entry(g.name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		entries = append(entries, e)
	}
	return entries, errors.Join(errs...)
}

// kept is a file that is kept, changed or as it is.
type kept struct {
	name, path string
	most       int64 // bytes
	change     func([]byte) ([]byte, error)
}

// files returns the program's ring, facts and first trace.
func (g *program) files() []kept {
	files := []kept{{name: "facts.json", path: filepath.Join(g.folder, "facts.json"), most: maxFacts}}
	if g.ring != nil {
		files = append(files, kept{name: "events.ring", path: g.ring.path, most: maxRing})
	}
	for _, w := range g.Windows {
		if w.Trace != "" {
			return append(files, kept{name: "trace.json", path: filepath.Join(g.folder, w.Trace), most: maxTrace, change: trimmed})
		}
	}
	return files
}

func (f kept) entry(folder string) (kit.Entry, error) {
	b, err := kit.ReadFile(f.path, f.most)
	if err == nil && f.change != nil {
		b, err = f.change(b)
	}
	if err != nil {
		return kit.Entry{}, fmt.Errorf("keep %s of %s: %w", f.name, folder, err)
	}
	return kit.Entry{Name: folder + "/" + f.name, Content: b}, nil
}

// trimmed leaves of a trace what the device ran and the calls that launched it.
func trimmed(trace []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(trace, &all); err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	var events, kept []json.RawMessage
	if err := json.Unmarshal(all["traceEvents"], &events); err != nil {
		return nil, fmt.Errorf("read events of trace: %w", err)
	}
	for _, e := range events {
		var of struct {
			Cat string `json:"cat"`
		}
		if json.Unmarshal(e, &of) != nil {
			continue
		}
		switch of.Cat {
		case "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver":
			kept = append(kept, e)
		}
	}
	b, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("write events of trace: %w", err)
	}
	all["traceEvents"] = b
	return json.Marshal(all) //nolint:wrapcheck // the caller names the file
}
