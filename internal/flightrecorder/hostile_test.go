// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Input made to cost more than it is: the reader takes memory and time as its bytes do,
// or refuses it.
func TestHostile(t *testing.T) {
	const head = `{"version": "2.4", "entries": [`
	const fields = `"record_id": 1, "collective_seq_id": 2, "process_group": ["0", "x"], "profiling_name": "nccl:barrier", "state": "scheduled"`
	key := func(s string) string { return "X" + string(rune(len(s))) + "\x00\x00\x00" + s }
	for name, data := range map[string]string{
		"JSON of lists":            strings.Repeat("[", 1<<20),
		"JSON of objects":          strings.Repeat(`{"a":`, 1<<18),
		"an entry of lists":        head + "{" + fields + `, "x": ` + strings.Repeat("[", 1<<20),
		"a long number":            head + `{"record_id": ` + strings.Repeat("9", 1<<20),
		"a number of exponents":    head + "{" + fields + `, "duration_ms": 1e999999999}]}`,
		"a long string":            head + `{"profiling_name": "` + strings.Repeat("a", 1<<20),
		"a string of escapes":      head + `{"profiling_name": "` + strings.Repeat(`\u0061`, 1<<17) + `"}]}`,
		"many keys":                head + "{" + fields + strings.Repeat(`,"k":1`, 1<<17) + "}]}",
		"many dimensions":          head + "{" + fields + `, "input_sizes": [[` + strings.Repeat("9,", 1<<18) + "9]]}]}",
		"many tensors":             head + "{" + fields + `, "input_sizes": [` + strings.Repeat("[],", 1<<18) + "[]]}]}",
		"many types":               head + "{" + fields + `, "input_dtypes": [` + strings.Repeat(`"Float",`, 1<<17) + `"Float"]}]}`,
		"many small entries":       head + strings.Repeat("{},", 1<<18) + "{}]}",
		"many entries":             head + strings.Repeat("{"+fields+"},", 1<<12) + "{" + fields + "}]}",
		"ranks without end":        `{"version": "2.4", "pg_config": {"0": {"name": "0", "ranks": "[` + strings.Repeat("1,", 1<<18) + `1]"}}}`,
		"a pickle of marks":        "\x80\x02" + strings.Repeat("(", 1<<20),
		"a pickle of lists":        "\x80\x02" + strings.Repeat("](", 1<<19),
		"a list within itself":     "\x80\x02}(" + key("entries") + "]q\x00(" + strings.Repeat("h\x00", 1<<18) + "eu.",
		"sizes within themselves":  "\x80\x02}(" + key("entries") + "](}(" + key("record_id") + "K\x01" + key("input_sizes") + "]q\x00(" + strings.Repeat("h\x00", 1<<16) + "eueu.",
		"sizes that refer":         "\x80\x02]q\x00(" + strings.Repeat("K\x01", 1<<10) + "e](" + strings.Repeat("h\x00", 1<<16) + "eq\x010"[:3],
		"entries of one long list": "\x80\x02}(" + key("entries") + "](" + "}(" + key("record_id") + "K\x01" + key("input_sizes") + "](](" + strings.Repeat("K\x01", 1<<16) + "eeq\x00u" + strings.Repeat("}("+key("record_id")+"K\x01"+key("input_sizes")+"h\x00u", 1<<10) + "eu.",
		"groups that share ranks":  "\x80\x02}(" + key("pg_config") + "}(" + key("0") + "}(" + key("ranks") + "X\x01\x00\x02\x00[" + strings.Repeat("1,", 1<<16-1) + "1]q\x00u" + strings.Repeat("K\x00}("+key("ranks")+"h\x00u", 1<<13) + "uu.",
		"groups that share a dict": "\x80\x02}(" + key("x") + "}(" + strings.Repeat("K\x01K\x02", 1<<15) + "uq\x00" + key("pg_config") + "}(" + strings.Repeat("K\x00h\x00", 1<<15) + "uu.",
		"groups of one long list":  "\x80\x02}(" + key("x") + "](" + strings.Repeat("K\x01", 1<<16) + "eq\x00" + key("pg_config") + "}(" + strings.Repeat("K\x00}("+key("ranks")+"h\x00u", 1<<13) + "uu.",
		"groups of one long name":  "\x80\x02}(" + key("x") + "X\x00\x00\x10\x00" + strings.Repeat("a", 1<<20) + "q\x00" + key("pg_config") + "}(" + strings.Repeat("K\x00}("+key("name")+"h\x00u", 1<<14) + "uu.",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			d, err := Decode([]byte(data), Options{Stacks: true})
			if err == nil {
				d.State(model.Rank{Rank: 1}, "x", StateOptions{})
			}
			runtime.ReadMemStats(&after)
			// A byte of a pickle can be a value of 16 bytes, a list of 28; tables double.
			assert.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20+200*len(data)))
			// 1 MB at a two-hundredth of the speed of ordinary dumps.
			assert.Less(t, time.Since(start), 2*time.Second)
		})
	}
}

// What is kept of an ordinary full dump is a few hundred kilobytes.
func TestKeptOfADump(t *testing.T) {
	data := frwrite.Pickle(fullDump(true))
	var before, after runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&before)
	d, err := Decode(data, Options{})
	require.NoError(t, err)
	for range 3 { // what waits for the next dump goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&after)
	// 2,000 operations of 128 bytes, with room for as many as the file's size lets expect.
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(500<<10))
	runtime.KeepAlive(d)
	runtime.KeepAlive(data)
}
