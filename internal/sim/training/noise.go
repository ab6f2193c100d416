// SPDX-License-Identifier: Apache-2.0

package training

import (
	"hash/fnv"
	"math"
)

// Every draw is a function of the seed and of what it is for, so that the same job
// with and without a fault has the same noise.

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func hash(seed, a, b uint64) uint64 { return mix(mix(mix(seed)+a) + b) }

func textSeed(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// Purposes of draws, so that none is used twice.
const (
	forKernel uint64 = iota + 1
	forLaunch
	forData
	forNetwork
	forChip
	forDrift
	forSeqLen
	forExperts
	forPlace
	forMissing
	forLost
	forLate
	forClock
	forWire
	forPause
	forEnd
)

// unit returns the draw as a number from 0 to below 1.
func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }

const quantiles = 4096

// normals are quantiles of the normal distribution.
var normals = func() (t [quantiles + 1]float64) {
	for i := range t {
		p := (float64(i) + 0.25) / (quantiles + 0.5)
		t[i] = math.Sqrt2 * math.Erfinv(2*p-1)
	}
	return t
}()

// normal returns a draw of the standard normal distribution from the low 32 bits.
func normal(h uint64) float64 {
	i, f := (h>>20)&(quantiles-1), float64(h&0xfffff)/(1<<20)
	return normals[i] + f*(normals[i+1]-normals[i])
}

// lognormal returns exp(sigma z).
func lognormal(h uint64, sigma float64) float64 {
	x := sigma * normal(h)
	if x > 0.3 || x < -0.3 {
		return math.Exp(x)
	}
	return 1 + x*(1+x*(0.5+x*(1.0/6+x/24)))
}

// tail returns what a kernel of the given length takes longer, by the high 32 bits
// of a draw.
func (t *Tails) tail(h uint64, length float64) float64 {
	u := float64(h>>32) / (1 << 32)
	if u >= t.Share {
		return 0
	}
	u /= t.Share
	floor := math.Pow(t.Low/t.High, t.Alpha)
	factor := t.Low * math.Pow(1-u*(1-floor), -1/t.Alpha)
	more := length * (factor - 1)
	if t.Most > 0 {
		more = min(more, t.Most*1e9)
	}
	return more
}
