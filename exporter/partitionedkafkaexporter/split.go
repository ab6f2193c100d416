// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
)

const (
	// anyPartition is that of data which nothing needs to be beside.
	anyPartition = -1
	// noPartition is that of data which do not belong to the topic.
	noPartition = -2
)

// part is what goes to one partition.
type part[T any] struct {
	partition int32
	key       []byte // of its records; nil where they have none
	data      T
}

// splitByRendezvous moves the spans of td to the partitions of their keys, of n. Their records have no key: each
// has many.
func splitByRendezvous(td ptrace.Traces, n int32) []part[ptrace.Traces] {
	places := make([]place, n)
	var parts []part[ptrace.Traces]
	var keys otelmap.PartitionKeys
	for i, rs := range td.ResourceSpans().All() {
		keys.Resource(rs.Resource())
		for j, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				to := model.Partition(keys.Span(span), n)
				p := &places[to]
				if p.part == 0 {
					parts = append(parts, part[ptrace.Traces]{partition: to, data: ptrace.NewTraces()})
					p.part = len(parts)
				}
				p.below(parts[p.part-1].data, i, j, rs, ss)
				span.MoveTo(p.spans.AppendEmpty())
			}
		}
	}
	return parts
}

// place is where the spans of a partition are put.
type place struct {
	part            int // from 1; 0: none yet
	resource, scope int // of the request, from 1
	resourceSpans   ptrace.ResourceSpans
	spans           ptrace.SpanSlice
}

// below makes the place for spans of the resource i and its scope j of a request.
func (p *place) below(td ptrace.Traces, i, j int, rs ptrace.ResourceSpans, ss ptrace.ScopeSpans) {
	if p.resource == i+1 && p.scope == j+1 {
		return
	}
	if p.resource != i+1 {
		p.resourceSpans = td.ResourceSpans().AppendEmpty()
		rs.Resource().CopyTo(p.resourceSpans.Resource())
		p.resourceSpans.SetSchemaUrl(rs.SchemaUrl())
	}
	p.resource, p.scope = i+1, j+1
	to := p.resourceSpans.ScopeSpans().AppendEmpty()
	ss.Scope().CopyTo(to.Scope())
	to.SetSchemaUrl(ss.SchemaUrl())
	p.spans = to.Spans()
}

// splitTracesByJob moves the resources of td to the partitions of their jobs.
func splitTracesByJob(td ptrace.Traces, n int32) []part[ptrace.Traces] {
	jobs := jobParts[ptrace.Traces]{index: map[string]int{}}
	for _, rs := range td.ResourceSpans().All() {
		rs.MoveTo(jobs.of(rs.Resource(), n, ptrace.NewTraces).ResourceSpans().AppendEmpty())
	}
	return jobs.parts
}

// splitLogsByJob moves the resources of ld to the partitions of their jobs.
func splitLogsByJob(ld plog.Logs, n int32) []part[plog.Logs] {
	jobs := jobParts[plog.Logs]{index: map[string]int{}}
	for _, rl := range ld.ResourceLogs().All() {
		rl.MoveTo(jobs.of(rl.Resource(), n, plog.NewLogs).ResourceLogs().AppendEmpty())
	}
	return jobs.parts
}

// splitLogsByClock moves each clock event of ld to a part of its key, of which a compacted topic keeps the last. Records
// that are no clock events are a part of no partition.
func splitLogsByClock(ld plog.Logs, n int32) (parts []part[plog.Logs]) {
	index := map[string]int{}
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				key := clockmap.Key(lr)
				at, known := index[key]
				if !known {
					at = len(parts)
					index[key] = at
					p := part[plog.Logs]{partition: noPartition, data: plog.NewLogs()}
					if key != "" {
						p.key = []byte(key)
						p.partition = model.Partition(p.key, n)
					}
					parts = append(parts, p)
				}
				to := parts[at].data.ResourceLogs().AppendEmpty()
				rl.Resource().CopyTo(to.Resource())
				to.SetSchemaUrl(rl.SchemaUrl())
				scope := to.ScopeLogs().AppendEmpty()
				sl.Scope().CopyTo(scope.Scope())
				scope.SetSchemaUrl(sl.SchemaUrl())
				lr.MoveTo(scope.LogRecords().AppendEmpty())
			}
		}
	}
	return parts
}

// jobParts are the parts of a request by job.
type jobParts[T any] struct {
	parts []part[T]
	index map[string]int
}

// of returns where the data of a resource go.
func (j *jobParts[T]) of(res pcommon.Resource, n int32, empty func() T) T {
	job := otelmap.JobKey(res)
	at, known := j.index[job]
	if !known {
		at = len(j.parts)
		j.index[job] = at
		p := part[T]{partition: anyPartition, data: empty()}
		if job != "" {
			p.key = []byte(job)
			p.partition = model.Partition(p.key, n)
		}
		j.parts = append(j.parts, p)
	}
	return j.parts[at].data
}
