// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// demoRank is the rank that has the fault in a demo, where no other is asked for.
const demoRank = 2

// demoPart returns the part that needs neither a GPU nor Python: the plugin, CUPTI's
// client and the collector on this machine's C library and kernel.
func demoPart() Part {
	return Part{
		Name:     "demo",
		Loopback: true,
		Title:    "The plugin and the collector on this system, with a simulated device",
		Limit:    40 * time.Second,
		Run:      runDemo,
	}
}

func runDemo(ctx context.Context, k *kit.Kit, p *report.Part) {
	bin := filepath.Join(k.Work, "bin")
	if err := demoFiles(k, bin); err != nil {
		p.Add("files", report.Failed, err.Error())
		return
	}
	for _, c := range []struct{ fault, class string }{{"compute", model.ClassCompute}, {"host", model.ClassHost}} {
		result, err := k.Run(ctx, kit.Command{
			Path: k.Lockstep(), Args: []string{"demo", "--witness", "cupti", "--fault", c.fault, "--once", "--json"},
			Env: []string{"LOCKSTEP_BIN=" + bin},
		})
		var text string
		if err == nil {
			text, err = demoVerdict([]byte(kit.LastLine(result.Stdout)), c.class)
		}
		if err != nil {
			broken(p, c.fault, err)
			continue
		}
		p.Add(c.fault, report.StandIn, text)
	}
}

// demoFiles puts what the demo needs into one folder, as it wants it.
func demoFiles(k *kit.Kit, bin string) error {
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return fmt.Errorf("prepare the demo: %w", err)
	}
	for _, path := range []string{k.Plugin(), k.StandIn("lockstep-demo-worker"), k.StandIn("lockstep-demo-cupti.so")} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("prepare the demo: got no %s in the kit; want it: copy the kit to this machine again", filepath.Base(path))
		}
		if err := os.Symlink(path, filepath.Join(bin, filepath.Base(path))); err != nil {
			return fmt.Errorf("prepare the demo: %w", err)
		}
	}
	return nil
}

// demoSummary is the last line of a demo, as far as it is judged.
type demoSummary struct {
	Steps  int64 `json:"steps"`
	Latest []struct {
		Class string `json:"class"`
		Rank  *int64 `json:"rank"`
	} `json:"latest"`
}

// demoVerdict returns what a demo found; the error is that it is wrong.
func demoVerdict(summary []byte, class string) (string, error) {
	var s demoSummary
	if err := json.Unmarshal(summary, &s); err != nil {
		return "", fmt.Errorf("read what the demo found: %w", err)
	}
	var found []string
	right := len(s.Latest) == 1
	for _, f := range s.Latest {
		rank := int64(-1)
		if f.Rank != nil {
			rank = *f.Rank
		}
		found = append(found, fmt.Sprintf("rank %d, class %s", rank, f.Class))
		right = right && rank == demoRank && f.Class == class
	}
	slices.Sort(found)
	if !right {
		return "", fmt.Errorf("judge the demo: got %v in %d steps; want rank %d, class %s alone", found, s.Steps, demoRank, class)
	}
	return fmt.Sprintf("a job of four processes, one slow: found %s within %d steps", found[0], s.Steps), nil
}
