// SPDX-License-Identifier: Apache-2.0

package training

import "math"

// readClocks prepares the clocks by which a rank's operations are stamped in this step.
func (j *Job) readClocks(r int) {
	o, c := &j.watch, &j.spec.Clock
	at := j.states[r].begin
	o.clocks[0] = hostClock(hash(j.seed, forClock, uint64(j.node(r))), c, at)
	o.clocks[1] = o.clocks[0]
	if !c.RawGPU || o.profiler {
		return
	}
	h := hash(j.seed, forClock, uint64(j.world+r))
	// A device counts from when it was started, and up to 10 ppm too fast or slow.
	slope := 1e-5 * (2*unit(mix(h)) - 1)
	o.clocks[1] = reading{at: at, offset: 1e9*unit(h) + slope*at, slope: slope, id: j.states[r].gpu}
}

// hostClock is a host's clock around a time: a constant error, a slow swing, and a drift.
func hostClock(h uint64, c *Clock, at float64) reading {
	out := reading{at: at}
	if c.Error == 0 && c.Drift == 0 {
		return out
	}
	a, phase := 2*unit(h)-1, unit(mix(h))
	const period = 60e9
	angle := 2 * math.Pi * (at/period + phase)
	swing := 0.3 * (1 - math.Abs(a)) * c.Error * 1e9
	drift := c.Drift * 1e-6 * (2*unit(mix(h+1)) - 1)
	out.offset = a*c.Error*1e9 + swing*math.Sin(angle) + drift*at
	out.slope = swing*math.Cos(angle)*2*math.Pi/period + drift
	return out
}
