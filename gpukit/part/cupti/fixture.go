// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// keep keeps the ring, the facts and the first trace of each mode.
func (r *runner) keep() {
	var entries []kit.Entry
	for _, mode := range modes {
		g := r.programs[mode]
		if g.ring == nil || g.err != nil {
			continue
		}
		files, err := filesOf(g)
		if err != nil {
			r.part.Add("fixture", report.Failed, err.Error())
			return
		}
		entries = append(entries, files...)
	}
	if len(entries) == 0 {
		return
	}
	if err := r.kit.Fixture("cupti", entries...); err != nil {
		r.part.Add("fixture", report.Failed, err.Error())
	}
}

func filesOf(g *program) ([]kit.Entry, error) {
	var entries []kit.Entry
	add := func(name, path string, change func([]byte) ([]byte, error)) error {
		b, err := os.ReadFile(path)
		if err == nil && change != nil {
			b, err = change(b)
		}
		if err != nil {
			return fmt.Errorf("keep %s: %w", name, err)
		}
		entries = append(entries, kit.Entry{Name: g.mode + "/" + name, Content: b})
		return nil
	}
	if err := add("events.ring", g.ring.path, nil); err != nil {
		return nil, err
	}
	if err := add("facts.json", filepath.Join(g.folder, "facts.json"), nil); err != nil {
		return nil, err
	}
	for _, w := range g.Windows {
		if w.Trace != "" {
			return entries, add("trace.json", filepath.Join(g.folder, w.Trace), trimmed)
		}
	}
	return entries, nil
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
