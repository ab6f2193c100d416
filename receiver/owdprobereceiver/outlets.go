// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/receiver/owdprobereceiver/internal/metadata"
)

// maxWaiting is how many bytes of edges may wait for a next component that does not return: 4,096 edges or
// more, as one takes up to 1 KiB.
const maxWaiting = 4 << 20

// outlets give edges and series to the next components from goroutines of their own, so that a next
// component that blocks does not keep the node from probing. An edge is measured once: what is refused, or is
// beyond maxWaiting, is lost, and the next window brings others.
type outlets struct {
	*deliver.Receiver
	counts  deliver.Counts // of edges
	logs    *deliver.Sender[plog.Logs]
	metrics *deliver.Sender[pmetric.Metrics]
	edges   *deliver.Queue
	series  *deliver.Queue
}

func newOutlets(set receiver.Settings, telemetry *metadata.TelemetryBuilder) (*outlets, error) {
	to, err := deliver.NewReceiver(set, deliver.ReceiverConfig{Transport: "udp", Format: "owd_probe"})
	if err != nil {
		return nil, err
	}
	return &outlets{
		Receiver: to, edges: deliver.NewLimitedQueue(set.Logger, maxWaiting), series: deliver.NewQueue(set.Logger),
		counts: deliver.Counts{
			What: "Edges", LogEvery: deliver.RepeatEvery,
			Emitted: telemetry.ReceiverOwdProbeEdgesEmitted.Add, Dropped: telemetry.ReceiverOwdProbeEdgesLost.Add,
		},
	}, nil
}

func (o *outlets) logsTo(next consumer.Logs)       { o.logs = o.Logs(next, &o.counts) }
func (o *outlets) metricsTo(next consumer.Metrics) { o.metrics = o.Metrics(next) }

func (o *outlets) putEdges(ld plog.Logs) {
	n, size := ld.LogRecordCount(), (&plog.ProtoMarshaler{}).LogsSize(ld)
	o.edges.Put(size, func(ctx context.Context) error {
		o.logs.Once(ctx, ld)
		return nil // the sender has counted it
	}, func() { o.logs.Drop(context.Background(), n, deliver.ErrFull) })
}

// metricsIdle reports whether the next component has returned from the series before. They are cumulative: the next ones
// have what these have.
func (o *outlets) metricsIdle() bool { return o.metrics != nil && o.series.Idle() }

// putMetrics gives the series, behind those that may be under way.
func (o *outlets) putMetrics(s *measures, now time.Time) {
	md := pmetric.NewMetrics()
	s.write(md, now)
	o.series.Put(0, func(ctx context.Context) error { return o.metrics.Once(ctx, md).Err }, func() {})
}

// stop begins the end; stopped waits until everything was delivered or is given up, and returns what was not.
func (o *outlets) stop(ctx context.Context) (stopped func() error) {
	last, closed := o.Stop(ctx)
	o.edges.Stop(last)
	o.series.Stop(last)
	return func() error {
		o.edges.Drain(context.Background())
		o.series.Drain(context.Background())
		return closed()
	}
}
