// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// meanings are what a line of each pattern shows. The confidence is that of software that has compared
// what it prints, and of lines that may be quoted or old. It is lower for DeepSpeed's shards, since
// DeepSpeed prints the same where a model is loaded on purpose without the optimizer; for its tags, since
// ranks may load as they have saved; and for Megatron's iteration, since what it compares with is garbage
// where not all ranks took part.
var meanings = map[Pattern]struct {
	class      string
	severity   model.Severity
	confidence float64
	action     string
}{
	MegatronIteration: {model.ClassMixed, model.SeverityError, 0.6, "stop the job before it saves: a rank has read another tracker than the others, or an all-reduce gave garbage; lockstep preflight says which save is whole, and --ckpt-step names it to Megatron"},
	DeepSpeedShards:   {model.ClassPartial, model.SeverityWarn, 0.7, "unless the optimizer is left out on purpose, stop the job, and take a save that lockstep preflight calls whole"},
	DeepSpeedTag:      {model.ClassMixed, model.SeverityError, 0.7, "give save_checkpoint one tag on all ranks, and resume from no save that lockstep preflight does not call whole"},
	NCCLVersion:       {model.ClassFleetMixed, model.SeverityWarn, 0.9, "give all ranks one container image or one version of NCCL"},
	NCCLNetDevices:    {model.ClassFleetMixed, model.SeverityWarn, 0.9, "look at the NICs of the nodes with fewer devices, and at what of /dev/infiniband their containers have"},
	DriverAPI:         {model.ClassFleetMixed, model.SeverityWarn, 0.9, "load the kernel module of the driver that is installed: drain the node, and reload it or restart the node"},
	DriverLibrary:     {model.ClassFleetMixed, model.SeverityWarn, 0.9, "load the kernel module of the driver that is installed: drain the node, and reload it or restart the node"},
	FabricManager:     {model.ClassFleetMixed, model.SeverityWarn, 0.9, "install the fabric manager of the driver's version, and start it"},
}

// absurd is the confidence of lines that contradict themselves: something is wrong, perhaps something else.
const absurd = 0.3

// finding returns what lines show as a finding.
func (l *series) finding(now time.Time) *model.Finding {
	meaning := meanings[l.pattern]
	f := model.Finding{
		Time: now.UnixNano(), Start: l.began.UnixNano(), Severity: meaning.severity,
		JobID: l.jobID, JobName: l.jobName, Kind: model.FindingEpoch, Class: meaning.class, Cause: model.CauseUnknown,
		Op: model.OpLogLine + string(l.pattern), Confidence: meaning.confidence, Action: meaning.action, Evidence: l.evidence(),
	}
	if l.absurd {
		f.Confidence, f.Severity = absurd, model.SeverityWarn
	}
	// The host that prints that ranks of a job differ is not the one at fault.
	if len(l.hosts) == 1 && !l.more && (l.jobID == "" || len(l.ranks) == 1) {
		f.Host = l.hosts[0]
	}
	if len(l.ranks) > 0 {
		f.Ranks = l.ranks
		if !l.more {
			f.RanksCount = model.Some(int64(len(l.ranks)))
		}
	}
	if len(l.ranks) == 1 && !l.more {
		f.Rank = model.Some(l.ranks[0])
	}
	return &f
}

func (l *series) evidence() *evidence.LogLine {
	ev := evidence.LogLine{Pattern: string(l.pattern), Line: l.text, Lines: l.count, Hosts: l.hosts, Ranks: l.ranks, More: l.more}
	if l.time > 0 {
		ev.Time = time.Unix(0, l.time).UTC().Format(time.RFC3339Nano)
	}
	for _, field := range l.fields {
		if ev.Said == nil {
			ev.Said = map[string]string{}
		}
		ev.Said[field.Name] = field.Value
	}
	return &ev
}

// recalled returns the lines of a finding that was open before a restart; nil where it is none of lines.
func recalled(p finding.Place, f *model.Finding, now time.Time) *series {
	ev, ok := evidence.As[evidence.LogLine](f.Evidence)
	if _, known := meanings[Pattern(ev.Pattern)]; !ok || !known {
		return nil
	}
	l := &series{
		place: p, pattern: Pattern(ev.Pattern), jobID: f.JobID, jobName: f.JobName, hosts: slices.Clone(ev.Hosts), ranks: slices.Clone(ev.Ranks),
		more: ev.More, text: ev.Line, absurd: f.Confidence == absurd, count: ev.Lines, began: time.Unix(0, f.Start), latest: now,
	}
	for _, name := range slices.Sorted(maps.Keys(ev.Said)) {
		l.fields = append(l.fields, Field{name, ev.Said[name]})
	}
	if at, err := time.Parse(time.RFC3339Nano, ev.Time); err == nil {
		l.time = at.UnixNano()
	}
	return l
}
