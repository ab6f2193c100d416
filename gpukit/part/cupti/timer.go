// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// timerRead is what programs/cupti_timer.py prints: %globaltimer of the device between
// two stamps of REALTIME, ns, many times.
type timerRead struct {
	Reason   string     `json:"reason"`
	Readings [][3]int64 `json:"readings"` // before, globaltimer, after
}

// timerOffset is where the offset of the device's timer must lie, ns.
type timerOffset struct {
	low, high  float64 // of the timer against REALTIME, from all readings
	resolution float64 // least difference of two readings that differ
	apart      bool    // no offset fits all: the timer drifts or steps
}

func offsetOf(readings [][3]int64) timerOffset {
	o := timerOffset{low: math.Inf(-1), high: math.Inf(1), resolution: math.Inf(1)}
	for i, r := range readings {
		o.low, o.high = max(o.low, float64(r[1]-r[2])), min(o.high, float64(r[1]-r[0]))
		if i > 0 && r[1] != readings[i-1][1] {
			o.resolution = min(o.resolution, math.Abs(float64(r[1]-readings[i-1][1])))
		}
	}
	o.apart = o.low > o.high
	return o
}

func (r *runner) timer(ctx context.Context) {
	const name = "globaltimer"
	if r.kit.GPU == nil {
		r.part.Add(name, report.NotShown, "%globaltimer is the device's")
		return
	}
	out, err := r.kit.Run(ctx, kit.Command{Path: r.kit.Python, Args: []string{r.kit.Program("cupti_timer.py")}, Limit: 60 * time.Second,
		Env: []string{"TRITON_CACHE_DIR=" + filepath.Join(r.kit.Work, "triton"), "CUDA_CACHE_PATH=" + filepath.Join(r.kit.Work, "cuda")}})
	var t timerRead
	if err == nil {
		lines := strings.Split(strings.TrimSpace(out.Stdout), "\n")
		err = json.Unmarshal([]byte(lines[len(lines)-1]), &t)
	}
	switch {
	case err != nil:
		r.part.Add(name, report.NotShown, "Triton could not read it: "+err.Error())
	case t.Reason != "" || len(t.Readings) == 0:
		r.part.Add(name, report.NotShown, "Triton could not read it: "+t.Reason)
	default:
		o := offsetOf(t.Readings)
		text := fmt.Sprintf("the GPU's timer is %+.1f to %+.1f us beside REALTIME, by %d readings; steps of %.0f ns or less", o.low/1000, o.high/1000, len(t.Readings), o.resolution)
		if o.apart {
			text = fmt.Sprintf("no offset fits all %d readings of the GPU's timer: it must be above %.1f and below %.1f us beside REALTIME", len(t.Readings), o.low/1000, o.high/1000)
		}
		r.add(report.Check{Name: name, Status: r.right, Text: text, Figures: []report.Figure{
			{Name: "offset, low end", Value: o.low / 1000, Unit: "us"}, {Name: "offset, high end", Value: o.high / 1000, Unit: "us"}}})
	}
}

func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}
