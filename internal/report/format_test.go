// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                         "0 s",
		999 * time.Nanosecond:     "999 ns",
		505 * time.Microsecond:    "505 µs",
		-505 * time.Microsecond:   "-505 µs",
		1384 * time.Microsecond:   "1.38 ms",
		24_060 * time.Microsecond: "24.1 ms",
		999_960 * time.Nanosecond: "1000 µs",
		12 * time.Second:          "12.0 s",
		2 * time.Hour:             "7200 s",
	} {
		assert.Equal(t, want, Duration(d), "%d ns", d)
	}
	assert.Equal(t, "505 µs", Seconds(505e-6))
	assert.Equal(t, "76.0 %", Share(0.76))
	assert.Equal(t, "0.40 %", Share(0.004))
}

func TestBytesAndCounts(t *testing.T) {
	assert.Equal(t, "1023 B", Bytes(1023))
	assert.Equal(t, "1.00 KiB", Bytes(1024))
	assert.Equal(t, "10.0 GiB", Bytes(10<<30))
	assert.Equal(t, "4096 TiB", Bytes(4<<50))
	assert.Equal(t, "-1,234,567", Thousands(-1234567))
	assert.Equal(t, "123", Thousands(123))
	assert.Equal(t, "1 file", Plural(1, "file"))
	assert.Equal(t, "0 files", Plural(0, "file"))
}

func TestRanks(t *testing.T) {
	assert.Equal(t, "rank 7", SomeRanks([]int64{7}, 1))
	assert.Equal(t, "ranks 2 and 6", SomeRanks([]int64{2, 6}, 2))
	assert.Equal(t, "ranks 2, 6 and 9", SomeRanks([]int64{2, 6, 9}, 3))
	long := make([]int64, 20)
	assert.True(t, strings.HasSuffix(SomeRanks(long, len(long)), "0 and 8 more"), SomeRanks(long, len(long)))
}

func TestWrap(t *testing.T) {
	assert.Equal(t, []string{"aaa bb", "cccc", "dddddddd", "e"}, Wrap("aaa bb cccc dddddddd e", 6))
	assert.Equal(t, []string{""}, Wrap("", 6))
}
