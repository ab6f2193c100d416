// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	second   = uint64(1_000_000_000)
	hostBase = 50 * second
	unixBase = 1_700_000_000 * second
)

// reading is the clock at a host time, drifting by ppm since hostBase, plus a step.
func reading(host uint64, ppm float64, step int64) Pair {
	return Pair{Host: host, Clock: clockAt(host, ppm, step), Width: 100}
}

func clockAt(host uint64, ppm float64, step int64) uint64 {
	past := float64(host - hostBase)
	return unixBase + (host - hostBase) + uint64(int64(past*ppm*1e-6)) + uint64(step)
}

func TestStampsLieWithinTheirBound(t *testing.T) {
	for _, ppm := range []float64{0, 40, -400} {
		var p Pairs
		for n := range uint64(1000) {
			p.Add(reading(hostBase+n*second/3, ppm, 0))
		}
		assert.LessOrEqual(t, p.Len(), maxPairs)
		assert.Zero(t, p.Steps())
		for _, ago := range []uint64{0, second / 7, 20 * second, 80 * second} {
			truth := hostBase + 333*second - ago
			host, bound, ok := p.Host(clockAt(truth, ppm, 0))
			require.True(t, ok)
			assert.LessOrEqual(t, apart(host, truth), bound, "%v ppm, %d ns ago", ppm, ago)
			assert.LessOrEqual(t, apart(host, truth), uint64(100), "on the line between the readings")
		}
	}
}

func TestBeyondTheReadingsTheBoundGrowsWithTheDistance(t *testing.T) {
	var p Pairs
	_, _, ok := p.Host(unixBase)
	assert.False(t, ok, "nothing was read yet")
	p.Add(reading(hostBase+10*second, 0, 0))
	_, near, ok := p.Host(clockAt(hostBase+9*second, 0, 0))
	require.True(t, ok)
	_, far, ok := p.Host(clockAt(hostBase, 0, 0))
	require.True(t, ok)
	assert.Equal(t, []uint64{50 + 500_000, 50 + 5_000_000}, []uint64{near, far})
	_, _, ok = p.Host(clockAt(hostBase+3600*second, 0, 0))
	assert.False(t, ok, "an hour off, drift alone may be 1.8 s")
}

// A clock that is stepped, as REALTIME is: what lies between the readings around the
// step may be of either side.
func TestAStepWidensTheBound(t *testing.T) {
	for _, step := range []int64{30_000_000, -30_000_000} {
		var p Pairs
		for n := range uint64(10) {
			p.Add(reading(hostBase+n*second, 0, 0))
		}
		stepped := hostBase + 9*second + second/2
		for n := uint64(10); n < 13; n++ {
			p.Add(reading(hostBase+n*second, 0, step))
		}
		assert.Equal(t, int64(1), p.Steps())
		for _, truth := range []uint64{stepped - 1000, stepped + 1000} {
			s := step
			if truth < stepped {
				s = 0
			}
			host, bound, ok := p.Host(clockAt(truth, 0, s))
			require.True(t, ok)
			assert.GreaterOrEqual(t, bound, uint64(30_000_000))
			assert.LessOrEqual(t, apart(host, truth), bound)
		}
		truth := hostBase + 11*second + second/2
		host, bound, ok := p.Host(clockAt(truth, 0, step))
		require.True(t, ok)
		assert.LessOrEqual(t, apart(host, truth), uint64(100))
		assert.Less(t, bound, uint64(1000), "between readings that agree all is well")
	}
}

// A step of a second leaves no doubt for long: what was read before is forgotten once
// the clock has settled.
func TestWhatWasReadBeforeAStepIsForgotten(t *testing.T) {
	var p Pairs
	for n := range uint64(10) {
		p.Add(reading(hostBase+n*second, 0, 0))
	}
	for n := uint64(10); n < 11+settled; n++ {
		p.Add(reading(hostBase+n*second, 0, -5*int64(second)))
	}
	assert.Equal(t, settled+1, p.Len())
	truth := hostBase + 12*second + second/2
	host, bound, ok := p.Host(clockAt(truth, 0, -5*int64(second)))
	require.True(t, ok)
	assert.LessOrEqual(t, apart(host, truth), bound)
	assert.Less(t, bound, uint64(1000))
}

// FuzzPairs gives readings and stamps of any words: bounded memory, and stamps at a
// reading are within its width where nothing contradicts it.
func FuzzPairs(f *testing.F) {
	var seed []byte
	for n := range uint64(12) {
		p := reading(hostBase+n*second, 20, int64(n/6)*int64(second))
		for _, w := range []uint64{p.Host, p.Clock, p.Width} {
			seed = binary.LittleEndian.AppendUint64(seed, w)
		}
	}
	f.Add(seed, unixBase)
	f.Add([]byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, stamp uint64) {
		var p Pairs
		for ; len(data) >= 24; data = data[24:] {
			u := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
			p.Add(Pair{Host: u(0), Clock: u(1), Width: u(2)})
			_, _, _ = p.Host(stamp)
			if host, bound, ok := p.Host(u(1)); ok && bound > maxPairBound {
				t.Fatalf("got %d with bound %d", host, bound)
			}
		}
		if p.Len() > maxPairs {
			t.Fatalf("%d readings", p.Len())
		}
		for i := 1; i < p.Len(); i++ {
			if p.pairs[i-1].Clock >= p.pairs[i].Clock {
				t.Fatal("not sorted")
			}
		}
	})
}
