// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"math"
	"math/bits"
)

// How a stamp was taken, from none to best.
const (
	KindNone     = 0
	KindUser     = 1 // by the program
	KindKernel   = 2 // by the kernel, at the driver
	KindHardware = 3 // by the NIC
)

// Stamp is when a packet left or arrived.
type Stamp struct {
	// Raw is CLOCK_MONOTONIC_RAW, or the NIC's own clock, in ns: what estimates
	// rest on.
	Raw int64
	// Unix is the same moment on the realtime clock, in ns; 0 where it is unknown.
	Unix  int64
	Kind  uint8  // of Raw
	Width uint32 // ns; the true moment is within Raw - Width and Raw + Width
}

// OK reports whether there is a raw stamp.
func (s Stamp) OK() bool { return s.Kind != KindNone }

// Timestamp is a STAMP timestamp as it stands in a packet: PTPv2 truncated (32
// bits of seconds, 32 bits of nanoseconds) or NTP (32 bits of seconds since 1900,
// 32 bits of fraction), as the packet's error estimate says. Ours are PTPv2 with
// the Unix epoch; they are labels and for other implementations, estimates rest
// on the raw stamps of the Clock TLV.
type Timestamp uint64

const (
	second = 1_000_000_000
	// unixNTP is 1970 in NTP seconds: 70 years with 17 leap days.
	unixNTP = (70*365 + 17) * 86400
)

// PTP returns a Unix time in ns as PTPv2 truncated timestamp.
func PTP(unix int64) Timestamp {
	s, ns := floorDiv(unix)
	return Timestamp(uint64(uint32(s))<<32 | ns)
}

// NTP returns a Unix time in ns as NTP timestamp, rounded down to 2^-32 s.
func NTP(unix int64) Timestamp {
	s, ns := floorDiv(unix)
	return Timestamp(uint64(uint32(s+unixNTP))<<32 | ns<<32/second)
}

// Unix returns a timestamp in ns, in the era that puts it nearest to a Unix time
// in ns: the 32 bits of seconds come round every 136 years.
func (t Timestamp) Unix(near int64, ptp bool) int64 {
	s, low := uint32(t>>32), uint64(uint32(t))
	if !ptp {
		s -= uint32(unixNTP % (1 << 32))
		low = (low*second + 1<<32 - 1) >> 32 // up, so that NTP(t).Unix is t
	}
	base, _ := floorDiv(near)
	return saturate(base+int64(int32(s-uint32(base))), low)
}

func floorDiv(ns int64) (s int64, rest uint64) {
	s, r := ns/second, ns%second
	if r < 0 {
		s, r = s-1, r+second
	}
	return s, uint64(r)
}

// saturate returns s seconds and ns, within int64: an era near its ends has
// seconds outside of it.
func saturate(s int64, ns uint64) int64 {
	const most = math.MaxInt64 / second
	switch {
	case s >= most:
		return math.MaxInt64
	case s < -most:
		return math.MinInt64
	}
	return s*second + int64(ns)
}

// ErrorEstimate is a packet's statement on its timestamps (RFC 4656, 4.1.2):
// bit 15 S, bit 14 Z, 6 bits scale, 8 bits multiplier.
type ErrorEstimate uint16

// Estimate returns the smallest error estimate, for PTPv2 timestamps of a clock
// that claims no synchronisation, that covers an error in ns.
func Estimate(ns uint32) ErrorEstimate {
	// In units of 2^-32 s, rounded up; less than 2^35, so the scale is at most 27.
	units := max(1, (uint64(ns)<<32+second-1)/second)
	scale := max(0, bits.Len64(units)-8)
	m := (units + 1<<scale - 1) >> scale
	if m > math.MaxUint8 {
		scale, m = scale+1, 1<<7
	}
	return ErrorEstimate(1<<14 | scale<<8 | int(m))
}

// Synchronized is the S bit: the clock claims to follow UTC.
func (e ErrorEstimate) Synchronized() bool { return e>>15 == 1 }

// PTP is the Z bit: the packet's timestamps are PTPv2 truncated, else NTP.
func (e ErrorEstimate) PTP() bool { return e>>14&1 == 1 }

// Scale is the exponent of the error, Multiplier * 2^(Scale-32) s.
func (e ErrorEstimate) Scale() uint8 { return uint8(e>>8) & 63 }

// width is the error in ns, rounded up, with the resolution of a timestamp; false
// where it is more than a Stamp can say.
func (e ErrorEstimate) width() (uint32, bool) {
	w := math.Ceil(e.Seconds()*second) + 1
	return uint32(min(w, math.MaxUint32)), w <= math.MaxUint32
}

// Multiplier is the other part of the error; the RFC forbids 0.
func (e ErrorEstimate) Multiplier() uint8 { return uint8(e) }

// Seconds is the error.
func (e ErrorEstimate) Seconds() float64 {
	return math.Ldexp(float64(e.Multiplier()), int(e.Scale())-32)
}
