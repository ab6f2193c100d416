// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
)

const (
	hosts = 5
	// skewedHost has a real-time clock that is ahead by skew.
	skewedHost = 2
	skew       = 20 * time.Millisecond
	// window of clocks, in periods.
	window = 4
	// halfWidth is that of bounds of offsets, ns.
	halfWidth = 1000
)

// skewed are the clocks of some hosts; the real-time clock of one is ahead.
func skewed(m *Moment) {
	if !m.each(window) || m.n == 0 {
		return
	}
	for i := range int64(hosts) {
		ahead := int64(0)
		if i == skewedHost && !m.right() {
			ahead = skew.Nanoseconds()
		}
		m.edge(i, m.clock(i, "realtime"), m.bootedAt(i)+ahead, model.EdgePair)
		for _, j := range []int64{(i + 1) % hosts, (i + 2) % hosts} {
			m.edge(i, m.clock(j, "raw"), m.bootedAt(i)-m.bootedAt(j), model.EdgeProbe)
		}
	}
}

func (m *Moment) clock(host int64, which string) string {
	return fmt.Sprintf("host:%s-h%d/b1/%s", m.job, host, which)
}

// bootedAt returns the Unix ns at which a host was started, when its raw clock read 0.
func (m *Moment) bootedAt(host int64) int64 {
	return time.Date(2000, 1, 1, int(host), 0, 0, 0, time.UTC).UnixNano() - 40*24*int64(time.Hour)
}

// edge writes what the window that ends now shows of a host's raw clock and another clock, which reads so much more.
func (m *Moment) edge(host int64, dst string, offset int64, source string) {
	span := window * int64(Period)
	e := model.ClockEdge{
		Src: m.clock(host, "raw"), Dst: dst, At: m.at.UnixNano() - span/2 - m.bootedAt(host), Span: span, Lower: offset - halfWidth, Upper: offset + halfWidth,
		Offset: offset, Sigma: 50, DriftBound: 0.05e-6, Samples: 200, Source: source, Stamps: model.StampKernel,
		// The clock is set right in this window.
		Stepped: source == model.EdgePair && host == skewedHost && m.from >= 0 && m.n-window < m.from && m.right(),
	}
	lr := m.Logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	clockmap.EdgeToLog(&e, lr)
	lr.SetTimestamp(pcommon.NewTimestampFromTime(m.at))
}
