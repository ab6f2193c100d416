// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// entry is a finding, a record or spans that wait in an outbox.
type entry struct {
	key     string
	bytes   int
	finding *model.Finding
	record  func(plog.LogRecord)
	spans   func(ptrace.Traces)
	seq     uint64 // in the order of the puts
	kept    bool   // as the newest of its key
}

// place is where an entry is in an outbox: with its number, until it is kept as the newest of its key.
type place struct {
	key string
	seq uint64 // 0: kept
}

func (e *entry) place() place {
	if e.kept {
		return place{key: e.key}
	}
	return place{e.key, e.seq}
}

// keep marks an entry as the newest of its key. A finding that is kept keeps nothing alive of the output it came with.
func (e *entry) keep() {
	e.kept = true
	if e.finding != nil {
		f := *e.finding
		e.finding = &f
	}
}

func logEntries(out *Output) []entry {
	all := findingEntries(out.Findings)
	for _, r := range out.Records {
		all = append(all, entry{key: "record/" + r.Key, bytes: r.Bytes, record: r.Write})
	}
	return all
}

func spanEntries(out *Output) []entry {
	all := findingEntries(out.FindingSpans)
	for _, s := range out.Spans {
		all = append(all, entry{key: "spans/" + s.Key, bytes: s.Bytes, spans: s.Write})
	}
	return all
}

func findingEntries(findings []model.Finding) []entry {
	all := make([]entry, 0, len(findings))
	for i := range findings {
		f := &findings[i]
		e := entry{bytes: f.Bytes(), finding: f}
		if f.ID != "" {
			e.key = "finding/" + f.ID
		}
		all = append(all, e)
	}
	return all
}

func findingsOf(entries []entry) (findings []model.Finding) {
	for i := range entries {
		if f := entries[i].finding; f != nil {
			findings = append(findings, *f)
		}
	}
	return findings
}

func logsOf(entries []entry) plog.Logs {
	ld := otelmap.FindingsToLogs(findingsOf(entries))
	var records plog.LogRecordSlice
	none := true
	for i := range entries {
		write := entries[i].record
		if write == nil {
			continue
		}
		if none {
			sl := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
			sl.Scope().SetName(otelmap.ScopeName)
			records, none = sl.LogRecords(), false
		}
		write(records.AppendEmpty())
	}
	return ld
}

func tracesOf(entries []entry) ptrace.Traces {
	td := otelmap.FindingsToTraces(findingsOf(entries))
	for i := range entries {
		if write := entries[i].spans; write != nil {
			write(td)
		}
	}
	return td
}
