// SPDX-License-Identifier: Apache-2.0

package series

import "testing"

// BenchmarkMetric_Add adds to a series that the metric has, and to one for which there is no room: the latter
// is what each operation of a sender costs that makes up names.
func BenchmarkMetric_Add(b *testing.B) {
	for name, job := range map[string]string{"known": "first", "overflowed": "second"} {
		b.Run(name, func(b *testing.B) {
			m := &Metric{Kind: Counter, Limit: 1}
			m.Add(t0, 1, Text("job", "first"), Number("rank", 3))
			m.Add(t0, 1, Text("job", job), Number("rank", 3))
			b.ReportAllocs()
			for b.Loop() {
				m.Add(t0, 1, Text("job", job), Number("rank", 3))
			}
		})
	}
}
