// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
	"github.com/lockstep-otel/lockstep/internal/component/services"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

const (
	// clocksPatience is how long a member of a group waits for what other collectors know of clocks: spans that it
	// reads before stay as they were stamped.
	clocksPatience = 10 * time.Second
	// quiet is after how long without a record a broker is asked whether there are any.
	quiet = time.Second
)

// awaitClocks waits until the timeline has what other collectors know of clocks.
func (m *member) awaitClocks(ctx context.Context) {
	if m.timeline == nil || m.cfg.Read == readAll {
		return
	}
	patience := time.NewTimer(clocksPatience)
	defer patience.Stop()
	select {
	case <-ctx.Done():
	case <-m.timeline.Ready():
	case <-patience.C:
		m.log.Warn("What other collectors know of clocks has not been read yet. Until then, spans stay as they were stamped. A receiver job_kafka with read: all and the same timeline reads it.", zap.Duration("waited", clocksPatience))
	}
}

// findTimeline finds the timeline that this collector shares with others.
func (m *member) findTimeline(host component.Host) error {
	id := m.cfg.TimelineID
	if id == nil {
		return nil
	}
	p, err := services.Find[timeline.Provider](host, *id, "timeline")
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	if p.Timeline().Ready() == nil {
		return fmt.Errorf("find timeline: got extension %q, which is this collector's alone; want one with shared: true", id)
	}
	m.timeline = p.Timeline()
	return nil
}

// readAll reads all partitions, from the first record or from where it ended before, until an error, or until ctx is
// done.
func (m *member) readAll(ctx context.Context, client sarama.Client, found map[string]topic) error {
	limits, err := m.takeAll(client, found)
	if err != nil {
		return err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return fmt.Errorf("read all partitions of %v: %w", m.topics, kafka.Explain(err))
	}
	defer func() { _ = consumer.Close() }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &all{member: m, client: client, consumer: consumer}
	a.behind.Store(int64(len(limits)))
	var readers sync.WaitGroup
	for k, in := range limits {
		readers.Go(func() {
			if err := a.readOne(ctx, k, in); err != nil {
				end(err)
			}
		})
	}
	readers.Go(func() { m.watch(ctx, end, client, found) })
	m.status.Set("group", nil)
	readers.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err //nolint:wrapcheck // says what it is
	}
	return nil
}

// takeAll takes all partitions, and returns their bounds. Those of a topic that was created anew begin anew.
func (m *member) takeAll(client sarama.Client, found map[string]topic) (map[key]bounds, error) {
	s, none := &session{member: m, client: client}, map[key]commit{}
	for _, topic := range m.topics {
		for p := range int32(found[topic].partitions) {
			none[key{topic, p}] = commit{offset: -1}
		}
	}
	limits, err := s.limits(none)
	if err != nil {
		return nil, err
	}
	anew := s.begunAnew(none, limits)
	m.owned.drop(func(p *partition) bool {
		_, still := limits[p.key]
		return !still || anew[p.key]
	})
	clear(m.anew)
	for k, in := range limits {
		m.owned.take(k, commit{offset: in.first}, in, m.cfg)
	}
	return limits, nil
}
