// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/IBM/sarama"

	"github.com/lockstep-otel/lockstep/bench/internal/broker"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

const (
	// limitedTopicBytes is max.message.bytes of the topic that steps go through.
	limitedTopicBytes = 1_000_000
	// largestBytes is where the search ends.
	largestBytes = 64_000_000
)

// growth is how steps grow in a search.
type growth struct {
	name   string
	layout func(n int) training.Layout // n: 1, 2, 4, ...
}

var growths = []growth{
	{"more ranks", func(n int) training.Layout { return training.Layout{DP: 2 * n, FSDP: true, PerNode: perNode} }},
	{"more layers on each of 8 ranks", func(n int) training.Layout {
		return training.Layout{DP: perNode, FSDP: true, PerNode: perNode, Layers: n}
	}},
}

// largest is the largest step that went through.
type largest struct {
	spans, bytes int
	refused      error // of one twice as large; nil: the search has ended before
}

// largestSteps sends steps, each twice as large as the one before, with every variant until it refuses one.
func largestSteps(ctx context.Context, b *broker.Broker, client sarama.Client, g *growth, variants []variant) ([]largest, error) {
	limit := strconv.Itoa(limitedTopicBytes)
	topic := func(variant int) string {
		return fmt.Sprintf("limited-%d-%s", variant, strings.ReplaceAll(g.name, " ", "-"))
	}
	for i := range variants {
		if err := b.Topic(topic(i), map[string]*string{"max.message.bytes": &limit}); err != nil {
			return nil, err
		}
	}
	all := make([]largest, len(variants))
	for n := 1; ; n *= 2 {
		w, err := stepOf(g.layout(n))
		if err != nil {
			return nil, err
		}
		progress("%s: a step of %.1f MB", g.name, float64(w.bytes())/1e6)
		for i := range variants {
			if all[i].refused != nil {
				continue
			}
			if err := all[i].try(ctx, b, client, &variants[i], topic(i), w); err != nil {
				return nil, err
			}
		}
		if w.bytes() >= largestBytes {
			return all, nil
		}
	}
}

// try sends one step. What an exporter has not refused must be in the topic.
func (l *largest) try(ctx context.Context, b *broker.Broker, client sarama.Client, v *variant, topic string, w *world) error {
	ends, err := endsOf(client, topic)
	if err != nil {
		return err
	}
	if _, l.refused = v.send(ctx, b.Address, topic, w.requests); l.refused != nil {
		return nil //nolint:nilerr // it is a result
	}
	f, err := w.read(client, topic, ends)
	if err != nil {
		return err
	}
	if _, err := f.complete(); err != nil {
		return fmt.Errorf("send a step of %d spans with %s: %w", w.spans, v.name, err)
	}
	l.spans, l.bytes = w.spans, w.bytes()
	return nil
}

// endsOf returns the offsets after the last records of a topic.
func endsOf(client sarama.Client, topic string) (ends []int64, err error) {
	for p := range partitions {
		end, err := client.GetOffset(topic, int32(p), sarama.OffsetNewest)
		if err != nil {
			return nil, fmt.Errorf("find the end of %s/%d: %w", topic, p, err)
		}
		ends = append(ends, end)
	}
	return ends, nil
}

// progress says on stderr what is done, for a person who waits.
func progress(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, "kafka: "+format+"\n", args...)
}
