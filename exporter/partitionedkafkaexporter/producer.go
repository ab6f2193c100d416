// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

// producer has the link to the brokers, and makes it when something is to be sent: the brokers may be away when
// the collector starts, and an idempotent producer needs their answer. It is safe for concurrent use.
type producer struct {
	config *Config
	topic  string
	meters kafka.Meters
	made   func() // counts links
	turn   chan struct{}

	// What follows belongs to the turn.
	link  *link
	limit int // of the value of a record, bytes; falls where the topic has a smaller one
	ended bool
	old   []*link // that were given up, and end
}

func newProducer(c *Config, topic string, made func()) *producer {
	return &producer{config: c, topic: topic, made: made, turn: make(chan struct{}, 1), limit: c.Producer.MaxMessageBytes}
}

// get returns the link and the limit of the value of a record, bytes.
func (p *producer) get(ctx context.Context) (*link, int, error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("wait for a connection to the brokers: %w", context.Cause(ctx))
	}
	defer func() { <-p.turn }()
	if p.ended {
		return nil, 0, errEnded
	}
	if p.link == nil {
		l, err := newLink(ctx, p.config, p.topic, p.limit, &p.meters)
		if err != nil {
			return nil, 0, err
		}
		p.made()
		p.link = l
	}
	return p.link, p.limit, nil
}

// drop ends a link, so that the next call makes another, with records of at most limit bytes.
func (p *producer) drop(l *link, limit int) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.limit = min(p.limit, limit)
	if p.link == l {
		p.link = nil
		l.close()
		p.old = slices.DeleteFunc(append(p.old, l), (*link).hasEnded)
	}
}

// end ends the links. Where a broker does not answer until ctx is done, it ends the connections.
func (p *producer) end(ctx context.Context) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.ended = true
	if p.link != nil {
		p.link.close()
		p.old = append(p.old, p.link)
	}
	for _, l := range p.old {
		l.end(ctx)
	}
}
