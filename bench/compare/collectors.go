// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A collector configuration for each kind of input. PATH is the input. No two components do
// something at the same moment of the fake time, at which their order would be by chance: their
// intervals have no small common multiple.
var configurations = map[string]string{
	"traces": `
receivers:
  torch_trace: {include: ["PATH"], mode: once}
connectors:
  straggler: {deadline: 24h, flush_interval: 10m, repeat_interval: 121s}
service:
  pipelines:
    traces: {receivers: [torch_trace], exporters: [straggler]}
    traces/steps: {receivers: [straggler, findings], exporters: [record/spans]}
    logs/raw: {receivers: [straggler], exporters: [findings, record/raw]}
    metrics: {receivers: [straggler, findings], exporters: [record/metrics]}
`,
	"inspector": `
receivers:
  nccl_inspector: {include: ["PATH"], mode: once}
connectors:
  straggler: {deadline: 24h, flush_interval: 10m, repeat_interval: 121s}
service:
  pipelines:
    traces: {receivers: [nccl_inspector], exporters: [straggler]}
    logs/raw: {receivers: [straggler], exporters: [findings, record/raw]}
    metrics: {receivers: [nccl_inspector, straggler, findings], exporters: [record/metrics]}
    traces/steps: {receivers: [straggler, findings], exporters: [record/spans]}
`,
	"dumps": `
receivers:
  flight_recorder: {include: ["PATH"], job_id: job, all_ranks: true, local: false, stacks: true, max_age: 0, poll_interval: 7130ms}
connectors:
  desync: {flush_interval: 603s, repeat_interval: 123s}
service:
  pipelines:
    logs/states: {receivers: [flight_recorder], exporters: [desync]}
    logs/raw: {receivers: [desync], exporters: [findings, record/raw]}
    metrics: {receivers: [desync, findings], exporters: [record/metrics]}
    traces: {receivers: [findings], exporters: [record/spans]}
`,
	"checkpoints": `
receivers:
  checkpoint: {roots: [{path: "PATH", job_id: job}], poll_interval: 37130ms, node: node}
extensions:
  memory:
connectors:
  epoch: {settle: 11m, flush_interval: 611s, repeat_interval: 127s, storage: memory}
service:
  extensions: [memory]
  pipelines:
    logs/saves: {receivers: [checkpoint], exporters: [epoch]}
    logs/raw: {receivers: [epoch], exporters: [findings, record/raw]}
    metrics: {receivers: [epoch, findings], exporters: [record/metrics]}
    traces: {receivers: [epoch, findings], exporters: [record/spans]}
`,
	"feed": `
receivers:
  feed: {path: "PATH"}
extensions:
  memory:
connectors:
  straggler: {flush_interval: 10m, repeat_interval: 121s}
  desync: {flush_interval: 603s, repeat_interval: 123s}
  epoch: {flush_interval: 611s, repeat_interval: 127s, storage: memory}
  clocks: {flush_interval: 613s}
service:
  extensions: [memory]
  pipelines:
    traces: {receivers: [feed], exporters: [straggler, desync]}
    logs/feed: {receivers: [feed], exporters: [desync, epoch, clocks]}
    logs/raw: {receivers: [straggler, desync, epoch, clocks], exporters: [findings, record/raw]}
    metrics: {receivers: [straggler, desync, epoch, clocks, findings], exporters: [record/metrics]}
    traces/steps: {receivers: [straggler, epoch, findings], exporters: [record/spans]}
`,
	"annotated": `
receivers:
  feed: {path: "PATH"}
processors:
  clock_skew:
  straggler: {histograms: true}
service:
  pipelines:
    traces: {receivers: [feed], processors: [clock_skew, straggler], exporters: [record/spans]}
`,
	"spans": `
receivers:
  feed: {path: "PATH"}
processors:
  clock_skew:
service:
  pipelines:
    traces: {receivers: [feed], processors: [clock_skew], exporters: [record/spans]}
`,
}

// common is what every configuration has beside: merged below it.
const common = `
exporters:
  record/findings: {path: "${env:LOCKSTEP_COMPARE_OUT}/findings.jsonl"}
  record/raw: {path: "${env:LOCKSTEP_COMPARE_OUT}/raw.jsonl"}
  record/spans: {path: "${env:LOCKSTEP_COMPARE_OUT}/spans.jsonl"}
  record/metrics: {path: "${env:LOCKSTEP_COMPARE_OUT}/metrics.jsonl"}
`

// recordings are the files that a collector leaves, in the order in which they are compared.
var recordings = []string{"findings", "raw", "spans", "metrics"}

// collected is a case of a collector.
type collected struct {
	name, configuration, path string
	start                     time.Time
	lives                     []time.Duration
}

// collectors are all cases of collectors.
func (c *comparison) collectors(found places) (out []input, err error) {
	for _, k := range cases(found) {
		dir := filepath.Join(c.work, "cases", strings.NewReplacer("/", "_", " ", "_", ",", "").Replace(k.name))
		if err := k.write(dir); err != nil {
			return nil, fmt.Errorf("write case %s: %w", k.name, err)
		}
		out = append(out, input{
			name: "collector " + k.name,
			run:  func(ctx context.Context, r *revision) (string, error) { return c.collect(ctx, r, dir) },
		})
	}
	return out, nil
}

// cases says which configurations read which places.
func cases(found places) (out []collected) {
	for _, p := range found {
		if p.start.IsZero() {
			p.start = newest(p.path).Add(time.Minute)
		}
		k := collected{name: p.name, path: p.path, configuration: string(p.kind), start: p.start, lives: []time.Duration{time.Hour}}
		switch {
		case p.kind == kindTraces && holdsInspector(p.path):
			k.configuration = "inspector"
		case p.job != "":
			out = append(out, collected{p.name + ", feed", "feed", p.job, p.start, k.lives})
			if p.annotated {
				out = append(out, collected{p.name + ", annotated", "annotated", p.job, p.start, k.lives})
			}
			continue
		case p.kind == kindTraces:
			k.path = traceGlob(p.path)
		case p.kind == kindCheckpoints:
			// The second life starts from what the first one has stored.
			k.lives = []time.Duration{40 * time.Minute, 40 * time.Minute}
		case p.kind == kindSpans:
			k.path = filepath.Join(p.path, feedName)
		case p.kind == kindFeed:
			k.lives = []time.Duration{40 * time.Minute, 2 * time.Hour}
		}
		out = append(out, k)
	}
	return out
}

func holdsInspector(path string) bool {
	logs, err := filepath.Glob(filepath.Join(path, "*-pid*.log"))
	return err == nil && len(logs) > 0
}

// traceGlob lets the receiver read a folder and what is below it, as `lockstep analyze` does.
func traceGlob(path string) string {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return path
	}
	entries, err := os.ReadDir(path)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() }) {
		return path
	}
	return filepath.Join(path, "*")
}

// write writes the files that the program of collectorDir reads.
func (k *collected) write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	seconds := make([]float64, len(k.lives))
	for i, d := range k.lives {
		seconds[i] = d.Seconds()
	}
	plan, err := json.Marshal(map[string]any{"start_unix_nano": k.start.UnixNano(), "seconds": seconds})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "case.json"), plan, 0o600); err != nil {
		return err
	}
	config := strings.ReplaceAll(configurations[k.configuration], "PATH", k.path) + common
	findings := strings.Contains(config, "findings, record/raw")
	if findings {
		config = strings.Replace(config, "connectors:\n", "connectors:\n  findings: {flush_interval: 607s}\n", 1)
		config = strings.Replace(config, "  pipelines:\n", "  pipelines:\n    logs: {receivers: [findings], exporters: [record/findings]}\n", 1)
	}
	// The collector's own log goes to its stderr, without places in the source, which move.
	const telemetry = "service:\n  telemetry: {metrics: {level: none}, logs: {level: warn, disable_caller: true, disable_stacktrace: true}}\n"
	config = strings.Replace(config, "service:\n", telemetry, 1)
	return os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600)
}

// collect runs a revision's collector and returns what it recorded, a value a line.
func (c *comparison) collect(ctx context.Context, r *revision, dir string) (string, error) {
	out, err := os.MkdirTemp(r.out, "case-")
	if err != nil {
		return "", fmt.Errorf("make folder for records: %w", err)
	}
	defer func() { _ = os.RemoveAll(out) }() // the work folder is removed in the end
	const patience = 3 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.program("collector.test"), "-test.run", "^TestCase$")
	cmd.Dir = out
	cmd.Env = append(r.env[:len(r.env):len(r.env)], "LOCKSTEP_COMPARE_CASE="+dir, "LOCKSTEP_COMPARE_OUT="+out, "GOMEMLIMIT=2GiB", "TZ=UTC")
	status, text, err := capture(ctx, cmd)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "exit %d\n%s", status, text)
	for _, name := range recordings {
		lines, err := os.ReadFile(filepath.Join(out, name+".jsonl"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read records: %w", err)
		}
		shown, err := renderRecords(lines)
		if err != nil {
			return "", fmt.Errorf("read records: %w", err)
		}
		fmt.Fprintf(&b, "=== %s\n%s", name, shown)
		if name == "raw" && r == c.head {
			c.saw(shown)
		}
	}
	n := c.normal(r)
	n.folders[out] = "<out>"
	return n.apply(strings.ReplaceAll(b.String(), "(cached)", "")), nil
}

var findingField = regexp.MustCompile(`(?m)^ *lockstep\.finding\.(kind|status): (\w+)$`)

// saw counts the findings of a recording by kind and status, so that the end can say what was
// there to be compared.
func (c *comparison) saw(shown string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.findings == nil {
		c.counts.findings = map[string]int{}
	}
	kind := ""
	for _, m := range findingField.FindAllStringSubmatch(shown, -1) { // ordered by name: the kind comes first
		if m[1] == "kind" {
			kind = m[2]
			continue
		}
		c.counts.findings[kind+" "+m[2]]++
	}
}
