// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// found is what a topic has.
type found struct {
	world        *world
	spans        map[spanID]int // how often each is there
	records      int
	valueBytes   int
	byPartition  []int              // bytes of values
	bySteps      map[[16]byte][]int // bytes of spans of each step's trace, by partition
	collectives  map[string]*collective
	polls        int
	partitionNow int
}

// collective is where the parts of a collective are.
type collective struct {
	members         int
	partition, poll int  // of the first part
	apart, split    bool // in several partitions, in several polls
}

// read reads a topic from the given offsets; none: from the start.
func (w *world) read(client sarama.Client, topic string, from []int64) (*found, error) {
	f := &found{
		world: w, spans: make(map[spanID]int, w.spans), byPartition: make([]int, partitions),
		bySteps: map[[16]byte][]int{}, collectives: map[string]*collective{},
	}
	for p := range partitions {
		first := int64(0)
		if from != nil {
			first = from[p]
		}
		f.partitionNow = p
		if err := polls(client, topic, int32(p), first, f.poll); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// poll takes what one poll returned.
func (f *found) poll(values [][]byte) error {
	f.polls++
	for _, value := range values {
		var u ptrace.ProtoUnmarshaler
		td, err := u.UnmarshalTraces(value)
		if err != nil {
			return fmt.Errorf("read a record: %w", err)
		}
		f.records++
		f.valueBytes += len(value)
		f.byPartition[f.partitionNow] += len(value)
		f.parts(td)
		f.sizes(td) // moves the spans
	}
	return nil
}

// parts notes where the parts of collectives are.
func (f *found) parts(td ptrace.Traces) {
	var problems otelmap.Problems
	all := otelmap.ReadOps(td, &problems)
	for i := range all {
		for j := range all[i].Ops {
			key, ok := collectiveOf(&all[i].Rank, &all[i].Ops[j])
			if !ok {
				continue
			}
			c := f.collectives[key]
			if c == nil {
				c = &collective{partition: f.partitionNow, poll: f.polls}
				f.collectives[key] = c
			}
			c.members++
			c.apart = c.apart || c.partition != f.partitionNow
			c.split = c.split || c.poll != f.polls
		}
	}
}

// sizes counts spans, and their bytes by step. Each span is measured alone, without its resource.
func (f *found) sizes(td ptrace.Traces) {
	var m ptrace.ProtoMarshaler
	one := ptrace.NewTraces()
	alone := one.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	each(td, func(s ptrace.Span) {
		f.spans[spanID{s.TraceID(), s.SpanID()}]++
		step := f.bySteps[s.TraceID()]
		if step == nil {
			step = make([]int, partitions)
			f.bySteps[s.TraceID()] = step
		}
		s.MoveTo(alone)
		step[f.partitionNow] += m.TracesSize(one)
	})
}

// complete returns an error where a span is missing, and how many are there again.
func (f *found) complete() (again int, err error) {
	missing := 0
	for id := range f.world.ids {
		if f.spans[id] == 0 {
			missing++
		}
	}
	for _, n := range f.spans {
		again += n - 1
	}
	if missing > 0 || len(f.spans) > len(f.world.ids) {
		return again, fmt.Errorf("count spans in Kafka: %d of %d are missing, %d are unknown", missing, len(f.world.ids), missing+len(f.spans)-len(f.world.ids))
	}
	return again, nil
}

// skew returns the largest over the mean.
func skew(bytes []int) float64 {
	sum := 0
	for _, n := range bytes {
		sum += n
	}
	return float64(slices.Max(bytes)) * float64(len(bytes)) / float64(max(1, sum))
}

// stepSkew returns the median over steps of the skew within a step.
func (f *found) stepSkew() float64 {
	var all []float64
	for _, step := range f.bySteps {
		all = append(all, skew(step))
	}
	slices.Sort(all)
	return stats.MedianHigh(all)
}

// together returns how many collectives have more than one member, and the shares of them that are in one
// partition, and in one poll.
func (f *found) together() (n int, partition, poll float64) {
	var inPartition, inPoll int
	for _, c := range f.collectives {
		if c.members < 2 {
			continue
		}
		n++
		if !c.apart {
			inPartition++
		}
		if !c.split {
			inPoll++
		}
	}
	return n, float64(inPartition) / float64(max(1, n)), float64(inPoll) / float64(max(1, n))
}
