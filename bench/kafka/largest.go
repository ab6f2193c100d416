// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/IBM/sarama"
)

const (
	// limitedTopicBytes is max.message.bytes of the topic that steps go through.
	limitedTopicBytes = 1_000_000
	// largestBytes is where the search ends.
	largestBytes = 64_000_000
)

// largest is the largest step that went through.
type largest struct {
	ranks, spans, bytes int
	refused             error // of the next one; nil: the search has ended before
}

// largestSteps sends steps of twice as many ranks each with every variant, until it refuses one.
func (b *broker) largestSteps(ctx context.Context, client sarama.Client, variants []variant) ([]largest, error) {
	limit := strconv.Itoa(limitedTopicBytes)
	for i := range variants {
		if err := b.topic(limitedTopic(i), map[string]*string{"max.message.bytes": &limit}); err != nil {
			return nil, err
		}
	}
	all := make([]largest, len(variants))
	for n := 2; ; n *= 2 {
		w, err := stepOf(n)
		if err != nil {
			return nil, err
		}
		progress("a step of %d ranks, %.1f MB", n, float64(w.bytes())/1e6)
		for i := range variants {
			if all[i].refused != nil {
				continue
			}
			if err := all[i].try(ctx, b, client, &variants[i], limitedTopic(i), w, n); err != nil {
				return nil, err
			}
		}
		if w.bytes() >= largestBytes {
			return all, nil
		}
	}
}

func limitedTopic(variant int) string { return fmt.Sprint("limited-", variant) }

// try sends one step. What an exporter has not refused must be in the topic.
func (l *largest) try(ctx context.Context, b *broker, client sarama.Client, v *variant, topic string, w *world, n int) error {
	ends, err := endsOf(client, topic)
	if err != nil {
		return err
	}
	if _, l.refused = v.send(ctx, b.address, topic, w.requests); l.refused != nil {
		return nil //nolint:nilerr // it is a result
	}
	f, err := w.read(client, topic, ends)
	if err != nil {
		return err
	}
	if _, err := f.complete(); err != nil {
		return fmt.Errorf("send a step of %d ranks with %s: %w", n, v.name, err)
	}
	l.ranks, l.spans, l.bytes = n, w.spans, w.bytes()
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
