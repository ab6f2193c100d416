// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"sync"
	"time"
)

// balanceWindow is long enough for many steps of a job.
const balanceWindow = time.Minute

// balance measures how even the partitions of a topic are. It is safe for concurrent use.
type balance struct {
	mu    sync.Mutex
	began time.Time
	now   []int64 // bytes of the window under way, by partition
	last  float64 // skew of the window before; 0: there was none
}

// resize begins anew where the topic has another number of partitions, and returns the former.
func (b *balance) resize(n int32, at time.Time) (former int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	former = len(b.now)
	if former != int(n) {
		b.began, b.now, b.last = at, make([]int64, n), 0
	}
	return former
}

// add counts bytes that went to a partition.
func (b *balance) add(partition int32, bytes int, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.Sub(b.began) >= balanceWindow {
		b.last, b.began = skew(b.now), at
		clear(b.now)
	}
	if int(partition) < len(b.now) {
		b.now[partition] += int64(bytes)
	}
}

// partitions returns how many there are, 0 where that is unknown.
func (b *balance) partitions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.now)
}

// skew returns that of the last full window, or of the first, which is under way; 0 where nothing was sent.
func (b *balance) skew() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last > 0 {
		return b.last
	}
	return skew(b.now)
}

// skew returns the largest over the mean; 0 where all are 0.
func skew(bytes []int64) float64 {
	var most, sum int64
	for _, n := range bytes {
		most, sum = max(most, n), sum+n
	}
	if sum == 0 {
		return 0
	}
	return float64(most) * float64(len(bytes)) / float64(sum)
}
