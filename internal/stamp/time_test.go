// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTimestampsAreTheSpecifications(t *testing.T) {
	// 1,700,000,000 is 0x6553F100; 123,456,789 is 0x075BCD15.
	assert.Equal(t, Timestamp(0x6553F100_075BCD15), PTP(1_700_000_000_123_456_789))
	// 1970 is 0x83AA7E80 in NTP seconds; half a second is 0x80000000.
	assert.Equal(t, Timestamp(0x83AA7E80_80000000), NTP(500_000_000))
	// NTP's seconds come round on 2036-02-07 06:28:16.
	assert.Equal(t, Timestamp(0), NTP(time.Date(2036, 2, 7, 6, 28, 16, 0, time.UTC).UnixNano()))
	// One ns before 1970.
	assert.Equal(t, Timestamp(0xFFFFFFFF_3B9AC9FF), PTP(-1))
}

// TestUnixFindsTheEra: within 68 years of near, both formats come back exactly.
func TestUnixFindsTheEra(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		unix := r.Int64N(math.MaxInt64/2) - math.MaxInt64/4
		near := unix + r.Int64N(136*365*86400*second) - 68*365*86400*second
		assert.Equal(t, unix, PTP(unix).Unix(near, true))
		assert.Equal(t, unix, NTP(unix).Unix(near, false))
	}
	// At the ends of int64 the nearest era lies outside.
	last := int64(math.MaxInt64) / second
	assert.Equal(t, int64(math.MaxInt64), Timestamp(uint64(uint32(last+1000))<<32).Unix(math.MaxInt64, true))
	assert.Equal(t, int64(math.MinInt64), Timestamp(uint64(uint32(-last-1000))<<32).Unix(math.MinInt64, true))
}

func TestErrorEstimate(t *testing.T) {
	e := ErrorEstimate(0b1_1_000011_00000101)
	assert.True(t, e.Synchronized())
	assert.True(t, e.PTP())
	assert.Equal(t, uint8(3), e.Scale())
	assert.Equal(t, uint8(5), e.Multiplier())
	assert.InDelta(t, 5*8.0/(1<<32), e.Seconds(), 0)
	assert.False(t, ErrorEstimate(1<<14).Synchronized())
	assert.False(t, ErrorEstimate(1<<15).PTP())
	// 2^-32 s is the least: the RFC forbids a multiplier of 0.
	assert.Equal(t, ErrorEstimate(0x4001), Estimate(0))
	// 1 s is 2^32 units, 128 * 2^25.
	assert.Equal(t, ErrorEstimate(1<<14|25<<8|128), Estimate(second))
}

// TestEstimateCovers: it is never less than the error, and hardly more.
func TestEstimateCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		ns := r.Uint32() >> r.UintN(32)
		got := Estimate(ns).Seconds()
		want := float64(ns) / second
		assert.GreaterOrEqual(t, got, want)
		assert.LessOrEqual(t, got, want*(1+1.0/128)+2.0/(1<<32))
	}
}
