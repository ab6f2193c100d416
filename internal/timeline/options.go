// SPDX-License-Identifier: Apache-2.0

package timeline

import "time"

// Options limit and tune a Timeline; zero values mean the defaults.
type Options struct {
	// Prefer are clocks in the order in which they are taken as reference.
	Prefer []string
	// History is how many windows of a clock are kept, and MaxClocks how many clocks.
	History, MaxClocks int
	// Forget is how long a clock is extrapolated after the last window.
	Forget time.Duration
	// Skew is by how much a real-time clock can be off the timeline, beyond its bound,
	// without a finding; Drift is the same for rates, dimensionless.
	Skew  time.Duration
	Drift float64
	// Slew is by how much the rate of a real-time clock can change from any moment on
	// without this being told, dimensionless: after its last window its bound grows by it.
	Slew float64
	// Shared: several gateways have one timeline, of which one solves for the clocks (Lead). They exchange edges and
	// models.
	Shared bool
	// steered: others extrapolate the scales that are solved here.
	steered bool
	// Now tells the time at which models of others come; time.Now by default.
	Now func() time.Time
}

const (
	// defaultHistory of windows of 2 s is two minutes: batches of spans are seconds late.
	defaultHistory   = 64
	defaultMaxClocks = 65_536
	// defaultForget: by then the bound has grown by 0.1 ppm of 10 minutes, 60 µs, and
	// more than probes ever leave.
	defaultForget = 10 * time.Minute
	// defaultSkew is what NTP keeps on a LAN with room to spare.
	defaultSkew = time.Millisecond
	// defaultDrift is what IEEE 802.3 allows an oscillator of a NIC; one beyond is
	// defective, or its clock is being slewed.
	defaultDrift = 100e-6
	// defaultSlew is what adjtime() does, and what the kernel lets NTP set as a frequency.
	// chronyd is faster where an offset is large: 1 s in 12 s, by its default.
	defaultSlew = 500e-6
)

// DefaultOptions returns what zero values mean.
func DefaultOptions() Options { return Options{}.withDefaults() }

// turn is how fast the pace of a scale changes, per ns; 0: without a limit.
func (o *Options) turn() float64 {
	if o.Shared || o.steered {
		return maxTurn
	}
	return 0
}

func (o Options) withDefaults() Options {
	if o.History <= 0 {
		o.History = defaultHistory
	}
	if o.MaxClocks <= 0 {
		o.MaxClocks = defaultMaxClocks
	}
	if o.Forget <= 0 {
		o.Forget = defaultForget
	}
	if o.Skew <= 0 {
		o.Skew = defaultSkew
	}
	if o.Drift <= 0 {
		o.Drift = defaultDrift
	}
	if o.Slew <= 0 {
		o.Slew = defaultSlew
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
