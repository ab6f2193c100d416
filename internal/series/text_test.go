// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

func TestMetric_LongLabel_IsCut(t *testing.T) {
	m := &Metric{Name: "m", Limit: 10}
	long := strings.Repeat("x", 100_000)
	m.Add(time.Unix(1, 0), 1, Text("job", long+"a"))
	m.Add(time.Unix(1, 0), 1, Text("job", long+"b"))
	m.Add(time.Unix(1, 0), 1, Text("job", "a\xff"))
	assert.Equal(t, 3, m.Len(), "labels that differ stay different")
	for _, label := range labels(m) {
		assert.LessOrEqual(t, len(label), cut.MaxLabel)
		assert.True(t, utf8.ValidString(label), "Prometheus refuses a scrape with others")
	}
}

func labels(m *Metric) (out []string) {
	for p := range m.Points() {
		for _, a := range p.Attrs() {
			out = append(out, a.Text())
		}
	}
	return out
}

// Each label is as long as it may be: what a scrape transfers is bounded all the same.
func TestMetric_ManyLongLabels_AreBoundedInBytes(t *testing.T) {
	m := &Metric{Name: "m", Limit: 1000}
	for i := range 1000 {
		m.Add(time.Unix(int64(i), 0), 1, Text("job", fmt.Sprint(i, strings.Repeat("x", 1000))))
	}
	total := 0
	for _, label := range labels(m) {
		total += len(label)
	}
	assert.LessOrEqual(t, total, 1000*textShare+cut.MaxLabel)
	assert.NotNil(t, m.overflow)
	m.Expire(time.Unix(1000, 0))
	assert.Zero(t, m.Len())
	assert.Zero(t, m.points.Bytes(), "what was dropped makes room")
}

// A metric has room for its limit of series of the usual length, and for one label of full length besides.
func TestMetric_OneLabelOfFullLength_HasRoom(t *testing.T) {
	for other, fits := range map[int]bool{textShare: true, textShare + 1: false} {
		m := &Metric{Name: "m", Limit: 1}
		m.Add(t0, 1, Text("job", strings.Repeat("x", cut.MaxLabel)), Text("class", strings.Repeat("y", other)))
		assert.Equal(t, fits, m.overflow == nil, "beside a label of %d bytes", other)
	}
}

// A sample that goes to the overflow series allocates no more than one of a known series.
func TestMetric_NoRoom_AllocatesNoSeries(t *testing.T) {
	m := &Metric{Kind: Counter, Limit: 1}
	adds := func(job string) float64 { return testing.AllocsPerRun(100, func() { m.Add(t0, 1, Text("job", job)) }) }
	known := adds("first")
	assert.LessOrEqual(t, adds("other"), known)
	assert.NotNil(t, m.overflow)
}
