// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"strings"
	"testing"
	"time"
)

// BenchmarkLog reads logs of a thousand lines: as v4.0 writes them, with a header
// each; as v4.4 does; and verbose ones of 16 channels.
func BenchmarkLog(b *testing.B) {
	const lines = 1000
	const s = "17900000000000"
	starts, stops := strings.TrimSuffix(strings.Repeat(s+"20,", 16), ","), strings.TrimSuffix(strings.Repeat(s+"90,", 16), ",")
	dump := strings.NewReplacer(`"coll_records":2`, `"coll_records":1000`, `"p2p_records":1`, `"p2p_records":0`).Replace(stats)
	for name, text := range map[string]string{
		"v4.0":    strings.Repeat(line("v4.0", headerA, reduce("17"))+"\n", lines),
		"v4.4":    line("v4.4", headerA, dump) + "\n" + strings.Repeat("{"+reduce("17")+"}\n", lines),
		"verbose": strings.Repeat(line("v4.0", headerA, verbose(s+"10", starts, stops))+"\n", lines),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			begin, read := time.Now(), 0
			for b.Loop() {
				recs, reasons := log([]byte(text), 256<<10)
				if len(reasons) > 0 {
					b.Fatal(reasons)
				}
				read += len(recs)
			}
			b.ReportMetric(float64(read)/time.Since(begin).Seconds(), "lines/s")
		})
	}
}
