// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// soakEvery is how often processes are measured.
const soakEvery = time.Second

// Under constant load, no process of the stages takes more and more memory, goroutines, descriptors or disk, and nothing
// is lost. LOCKSTEP_SOAK sets for how many seconds, 1,800 in the full tier.
func TestKafka_ConstantLoad_NothingGrows(t *testing.T) {
	t.Parallel()
	soak := time.Duration(environmentNumber(t, "LOCKSTEP_SOAK", tier.N(t, 120, 1800))) * time.Second
	w, j := &stageWorld{}, startJaeger(t)
	var grown []*growth
	w.beforeStart = func(name, config string, c *killable, state string) {
		c.env["LOCKSTEP_JAEGER_ENDPOINT"] = j.otlp // where there is none, the queue for it grows to its limit
		grown = append(grown, watchGrowth(t, name, config, c, state))
	}
	w.prepare(t, startKafka(t, false, nil), "", 1, 1)
	w.produce(t, func() {
		for began := time.Now(); time.Since(began) < soak; time.Sleep(soakEvery) {
			for _, g := range grown {
				g.sample(t, time.Since(began))
			}
		}
	})
	made := slices.Min((&killWorld{workers: w.workers}).stepsMade(t))
	whole, part := w.sink.judged(made, liveRanks)
	missing := w.sink.missing(w.load.acknowledged())
	accused, ids := w.accused(t)
	t.Logf("%v of %d spans/s and a job of %d ranks: %d spans produced, %d lost; %d steps, %d concluded over all ranks, %d over some; findings %v, ids %d\n%s",
		soak, loadSpans*int(time.Second/loadPeriod), liveRanks, w.load.acknowledged(), missing, made, whole, part, accused, len(ids), growthTable(grown))
	assert.Zero(t, missing)
	assert.Equal(t, made, whole)
	// Other work on this machine may make another rank slow for a while.
	assert.Contains(t, slices.Collect(maps.Keys(accused)), fmt.Sprintf("straggler host rank %d", slowRank))
	for _, g := range grown {
		g.check(t)
	}
	for _, c := range w.all() {
		assert.Zero(t, c.end(t), c.name)
	}
}

// growth is what a process has had over time.
type growth struct {
	name   string
	c      *killable
	state  string // its directory; "": it has none
	pprof  string
	at     []float64 // minutes
	series [len(resources)][]float64
}

// resources are what is measured, with what may come to be used over the whole run: a share of the mean, and
// something more. Memory follows the collector of garbage, and a file of a queue its largest content.
var resources = [...]struct {
	name, unit string
	share, and float64
}{
	{"memory", "MiB", 0.15, 24},
	{"goroutines", "", 0, 5},
	{"descriptors", "", 0, 5},
	{"disk", "MiB", 0.15, 8},
}

// watchGrowth adds the extension pprof to a collector, which says how many goroutines there are.
func watchGrowth(t *testing.T, name, config string, c *killable, state string) *growth {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot(t), configPath(config)))
	require.NoError(t, err)
	var file struct {
		Service struct{ Extensions []string }
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	g := &growth{name: name, c: c, state: state, pprof: freePorts(t, 1)[0]}
	c.args = append(c.args, "--config", fmt.Sprintf("yaml:{extensions: {pprof: {endpoint: '%s'}}, service: {extensions: [%s]}}", g.pprof, strings.Join(append(file.Service.Extensions, "pprof"), ", ")))
	return g
}

func (g *growth) sample(t *testing.T, since time.Duration) {
	t.Helper()
	pid := g.c.cmd.Process.Pid
	body, err := get("http://" + g.pprof + "/debug/pprof/goroutine?debug=1")
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(body), "\n")
	goroutines, err := strconv.ParseFloat(strings.TrimPrefix(first, "goroutine profile: total "), 64)
	require.NoError(t, err, first)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	var disk int64
	if g.state != "" {
		disk = bytesBelow(t, g.state)
	}
	g.at = append(g.at, since.Minutes())
	for i, v := range []float64{float64(residentBytes(t, pid)) / (1 << 20), goroutines, float64(len(open)), float64(disk) / (1 << 20)} {
		g.series[i] = append(g.series[i], v)
	}
}

// line fits a line to what was measured after the first quarter, in which buffers and windows fill, and returns its
// mean, and what it gains in a minute and over all of these minutes.
func (g *growth) line(resource int) (mean, minute, all float64) {
	from := len(g.at) / 4
	x, y := g.at[from:], g.series[resource][from:]
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	n := float64(len(x))
	minute = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return sy / n, minute, minute * (x[len(x)-1] - x[0])
}

func (g *growth) check(t *testing.T) {
	t.Helper()
	require.Greater(t, len(g.at), 8, "too short to see a slope")
	for i, r := range resources {
		mean, _, all := g.line(i)
		assert.LessOrEqual(t, all, r.share*mean+r.and, "%s of %s grow", r.name, g.name)
	}
}

func growthTable(all []*growth) string {
	var b strings.Builder
	for _, g := range all {
		fmt.Fprintf(&b, "%-10s", g.name)
		for i, r := range resources {
			mean, minute, _ := g.line(i)
			fmt.Fprintf(&b, "  %s: mean %.1f %s, slope %+.3f a minute", r.name, mean, r.unit, minute)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
