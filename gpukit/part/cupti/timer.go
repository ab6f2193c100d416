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

const (
	// maxTimerOffset is how far the GPU's timer may be from REALTIME, which it is set
	// from, ns: crystals that differ by 20 ppm part by 52 s in a month.
	maxTimerOffset = 60e9
	// maxTimerWidth is how little readings may bound the offset and still show one, ns.
	maxTimerWidth = 1e6
	// maxTimerDrift is how far the timer's rate may be from REALTIME's, as in internal/gpuclock.
	maxTimerDrift = 500e-6
	// coarsestTimer is the longest step known of such a timer, ns.
	coarsestTimer = 1024
)

// timerOffset is where the offset of the device's timer must lie, ns.
type timerOffset struct {
	low, high  float64 // of the timer against REALTIME, from all readings
	resolution int64   // largest step that all readings are multiples of; 0: the timer does not advance
	span       int64   // from the first stamp to the last
}

func offsetOf(readings [][3]int64) timerOffset {
	o := timerOffset{low: math.Inf(-1), high: math.Inf(1)}
	for i, r := range readings {
		o.low, o.high = max(o.low, float64(r[1]-r[2])), min(o.high, float64(r[1]-r[0]))
		if i > 0 {
			o.resolution = commonStep(o.resolution, r[1]-readings[i-1][1])
		}
	}
	if n := len(readings); n > 0 {
		o.span = readings[n-1][2] - readings[0][0]
	}
	return o
}

// commonStep returns the greatest common divisor.
func commonStep(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// apart reports whether no offset fits all readings, even of a timer that counts in
// steps and drifts as crystals do.
func (o timerOffset) apart() bool {
	return o.low-o.high > float64(min(o.resolution, coarsestTimer))+maxTimerDrift*float64(o.span)
}

// nearest returns the offset of the least size that fits, ns.
func (o timerOffset) nearest() float64 {
	if o.low <= 0 && o.high >= 0 {
		return 0
	}
	return min(math.Abs(o.low), math.Abs(o.high))
}

// timerCheck judges readings of the GPU's timer.
func timerCheck(right report.Status, readings [][3]int64) report.Check {
	o := offsetOf(readings)
	c := report.Check{Name: "globaltimer", Status: right, Figures: []report.Figure{
		{Name: "offset, low end", Value: o.low / 1000, Unit: "us"}, {Name: "offset, high end", Value: o.high / 1000, Unit: "us"},
	}}
	c.Text = fmt.Sprintf("the GPU's timer is %+.1f to %+.1f us beside REALTIME, by %d readings; it counts in steps of %d ns", o.low/1000, o.high/1000, len(readings), o.resolution)
	switch {
	case len(readings) < 2:
		c.Status, c.Text = report.NotShown, fmt.Sprintf("got %d reading of the GPU's timer; want more", len(readings))
	case o.resolution == 0:
		c.Status, c.Text = report.Failed, fmt.Sprintf("the GPU's timer does not advance in %d readings", len(readings))
	case o.apart():
		c.Status = report.Failed
		c.Text = fmt.Sprintf("no offset fits all %d readings of the GPU's timer: it must be above %.1f and below %.1f us beside REALTIME", len(readings), o.low/1000, o.high/1000)
	case o.high-o.low > maxTimerWidth:
		c.Status = report.NotShown
		c.Text += fmt.Sprintf("; that is too wide to show more: want %.0f us", maxTimerWidth/1000)
	case o.nearest() > maxTimerOffset:
		c.Status = report.Failed
		c.Text += fmt.Sprintf("; want within %.0f s", maxTimerOffset/1e9)
	}
	return c
}

func (r *runner) timer(ctx context.Context) {
	const name = "globaltimer"
	if r.kit.GPU == nil {
		r.part.Add(name, report.NotShown, "%globaltimer is the device's")
		return
	}
	out, err := r.kit.Run(ctx, kit.Command{
		Path: r.kit.Python, Args: []string{r.kit.Program("cupti_timer.py")}, Limit: 60 * time.Second,
		Env: []string{"TRITON_CACHE_DIR=" + filepath.Join(r.kit.Work, "triton"), "CUDA_CACHE_PATH=" + filepath.Join(r.kit.Work, "cuda")},
	})
	var t timerRead
	if err == nil {
		lines := strings.Split(strings.TrimSpace(out.Stdout), "\n")
		err = json.Unmarshal([]byte(lines[len(lines)-1]), &t)
	}
	switch {
	case err != nil:
		r.part.Add(name, report.NotShown, "Triton could not read it: "+err.Error())
	case t.Reason != "":
		r.part.Add(name, report.NotShown, "Triton could not read it: "+t.Reason)
	default:
		r.add(timerCheck(r.right, t.Readings))
	}
}

func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}
