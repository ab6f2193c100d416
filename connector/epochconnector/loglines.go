// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/epoch/logline"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// LogLinesConfig is about lines of ordinary logs.
type LogLinesConfig struct {
	// Enabled: lines of logs are looked at.
	Enabled bool `mapstructure:"enabled"`
	// Silent is after how long without such a line a finding is closed.
	Silent time.Duration `mapstructure:"silent"`

	_ struct{}
}

func newDefaultLogLinesConfig() LogLinesConfig {
	return LogLinesConfig{Enabled: true, Silent: logline.NewDefaultConfig().Silent}
}

func (c *Config) lines() logline.Config {
	return logline.Config{Silent: c.LogLines.Silent, MaxEpisodes: c.MaxFindings}
}

// takeLine takes a record of an ordinary log, and reports whether it says that something mixed. Events
// of ours are none: they may quote such a line.
func (h *hub) takeLine(of pcommon.Resource, lr plog.LogRecord, now time.Time) bool {
	text, ok := textOf(lr.Body())
	if !h.cfg.LogLines.Enabled || !ok || strings.HasPrefix(lr.EventName(), "lockstep.") {
		return false
	}
	m := of.Attributes()
	return h.lines.Observe(&logline.Line{
		Time: int64(lr.Timestamp()), Text: text,
		JobID: attribute(m, semconv.JobID), JobName: attribute(m, semconv.ServiceName),
		HostID: attribute(m, semconv.HostID), Host: cmp.Or(attribute(m, semconv.HostName), attribute(m, "k8s.node.name")),
	}, now)
}

// textOf is the line of a record: its body, or what a journal's or a structured record's body has of
// it.
func textOf(body pcommon.Value) (string, bool) {
	switch body.Type() {
	case pcommon.ValueTypeStr:
		return body.Str(), true
	case pcommon.ValueTypeMap:
		for _, name := range []string{"MESSAGE", "message", "msg", "log"} {
			if v, ok := body.Map().Get(name); ok && v.Type() == pcommon.ValueTypeStr {
				return v.Str(), true
			}
		}
	default:
	}
	return "", false
}

// maxAttribute bounds a name of a resource, in bytes: a longer one names nothing.
const maxAttribute = 256

func attribute(m pcommon.Map, name string) string {
	v, ok := m.Get(name)
	if !ok || v.Type() != pcommon.ValueTypeStr || len(v.Str()) > maxAttribute {
		return ""
	}
	return v.Str()
}

// meanings are what is said of each pattern. The confidence is that of software which has compared what
// it says, and of lines which may be quoted or old. Of DeepSpeed's shards it is less, since it says the
// same where a model is loaded on purpose without the optimizer; of its tags, since ranks may load as
// they have saved; of Megatron's iteration, since what it
// compares with is garbage where not all ranks took part.
var meanings = map[logline.Pattern]struct {
	class      string
	severity   model.Severity
	confidence float64
	action     string
}{
	logline.MegatronIteration: {model.ClassMixed, model.SeverityError, 0.6, "stop the job before it saves: a rank has read another tracker than the others, or an all-reduce gave garbage; lockstep preflight says which save is whole, and --ckpt-step names it to Megatron"},
	logline.DeepSpeedShards:   {model.ClassPartial, model.SeverityWarn, 0.7, "unless the optimizer is left out on purpose, stop the job, and take a save that lockstep preflight calls whole"},
	logline.DeepSpeedTag:      {model.ClassMixed, model.SeverityError, 0.7, "give save_checkpoint one tag on all ranks, and resume from no save that lockstep preflight does not call whole"},
	logline.NCCLVersion:       {model.ClassFleetMixed, model.SeverityWarn, 0.9, "give all ranks one container image or one version of NCCL"},
	logline.NCCLNetDevices:    {model.ClassFleetMixed, model.SeverityWarn, 0.9, "look at the NICs of the nodes with fewer devices, and at what of /dev/infiniband their containers have"},
	logline.DriverAPI:         {model.ClassFleetMixed, model.SeverityWarn, 0.9, "load the kernel module of the driver that is installed: drain the node, and reload it or restart the node"},
	logline.DriverLibrary:     {model.ClassFleetMixed, model.SeverityWarn, 0.9, "load the kernel module of the driver that is installed: drain the node, and reload it or restart the node"},
	logline.FabricManager:     {model.ClassFleetMixed, model.SeverityWarn, 0.9, "install the fabric manager of the driver's version, and start it"},
}

// absurd is the confidence of lines that say what can not be: something is wrong, if not what they say.
const absurd = 0.3

// lineFindings makes what is told everywhere of what lines of logs say.
func lineFindings(episodes []logline.Episode, now time.Time) []model.Finding {
	return findingsOf(episodes, now, lineFinding)
}

func lineFinding(e *logline.Episode, now time.Time) model.Finding {
	meaning := meanings[e.Pattern]
	op := model.OpLogLine + string(e.Pattern)
	of := e.JobID
	if of == "" && len(e.Hosts) > 0 {
		of = e.Hosts[0]
	}
	f := model.Finding{
		Time: now.UnixNano(), Start: e.Began.UnixNano(), Severity: meaning.severity,
		JobID: e.JobID, JobName: e.JobName, Kind: model.FindingEpoch, Class: meaning.class, Cause: model.CauseUnknown, Op: op,
		Confidence: meaning.confidence, Action: meaning.action,
		ID: model.FindingID(of, model.FindingEpoch, op, e.Began.UnixNano()), Evidence: lineEvidence(e),
	}
	if e.Absurd {
		f.Confidence, f.Severity = absurd, model.SeverityWarn
	}
	// Who prints that ranks of a job differ is not who is wrong.
	if len(e.Hosts) == 1 && !e.More && (e.JobID == "" || len(e.Ranks) == 1) {
		f.Host = e.Hosts[0]
	}
	if len(e.Ranks) > 0 {
		f.Ranks = e.Ranks
		if !e.More {
			f.RanksCount = model.Some(int64(len(e.Ranks)))
		}
	}
	if len(e.Ranks) == 1 && !e.More {
		f.Rank = model.Some(e.Ranks[0])
	}
	setStatus(&f, e.Revision, e.Ended)
	return f
}

func lineEvidence(e *logline.Episode) *evidence.LogLine {
	ev := evidence.LogLine{Pattern: string(e.Pattern), Line: e.Text, Lines: e.Count, Hosts: slices.Clone(e.Hosts), Ranks: slices.Clone(e.Ranks), More: e.More}
	if e.Time > 0 {
		ev.Time = time.Unix(0, e.Time).UTC().Format(time.RFC3339Nano)
	}
	for _, field := range e.Fields {
		if ev.Said == nil {
			ev.Said = map[string]string{}
		}
		ev.Said[field.Name] = field.Value
	}
	return &ev
}
