// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/epoch/resume"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
)

// ResumeConfig is about what ranks have loaded as they resume.
type ResumeConfig struct {
	// Silent is after how long a life of a job counts no more of which no rank tells anything.
	Silent time.Duration `mapstructure:"silent"`
	// MaxIncarnations and MaxRanks bound the lives of jobs that are held, and the ranks of all of them.
	MaxIncarnations int `mapstructure:"max_incarnations"`
	MaxRanks        int `mapstructure:"max_ranks"`

	_ struct{}
}

func newDefaultResumeConfig() ResumeConfig {
	c := resume.NewDefaultConfig()
	return ResumeConfig{Silent: c.Silent, MaxIncarnations: c.Incarnations, MaxRanks: c.Ranks}
}

func (c *Config) resume() resume.Config {
	r := &c.Resume
	return resume.Config{Silent: r.Silent, Incarnations: r.MaxIncarnations, Ranks: r.MaxRanks, Bytes: c.maxBytes() / 8, MaxEpisodes: c.MaxFindings}
}

// takeResume takes what a rank says that it has loaded.
func (h *hub) takeResume(of pcommon.Resource, lr plog.LogRecord, now time.Time) error {
	v, _, err := resumemap.FromLog(of, lr)
	if err == nil {
		h.resume.Observe(&v, now)
	}
	return err
}

// resumeAction is what an operator would do next.
const resumeAction = "stop the job before it saves, and have all ranks load one save: lockstep preflight says which is whole, the evidence who loaded what"

// resumeFindings makes what is told everywhere of ranks that have loaded different states.
func resumeFindings(episodes []resume.Episode, now time.Time) []model.Finding {
	return findingsOf(episodes, now, resumeFinding)
}

func resumeFinding(e *resume.Episode, now time.Time) model.Finding {
	j := &e.Judgement
	f := model.Finding{
		Time: now.UnixNano(), Start: e.Began.UnixNano(), Severity: model.SeverityError,
		JobID: e.Job, JobName: e.JobName, Incarnation: e.Incarnation,
		Kind: model.FindingEpoch, Class: model.ClassMixed, Cause: model.CauseUnknown, Op: model.OpResume,
		Confidence: 1, Action: resumeAction,
		ID: model.FindingID(e.Incarnation, model.FindingEpoch, model.OpResume, e.Began.UnixNano()),
	}
	if j.MinorityCount > 0 { // else both sides may be wrong
		f.Ranks, f.RanksCount = j.Minority, model.Some(int64(j.MinorityCount))
	}
	if j.MinorityCount == 1 {
		f.Rank = model.Some(j.Minority[0])
	}
	if len(j.Hosts) == 1 {
		f.Host = j.Hosts[0]
	}
	if j.MinorityCount == 1 && len(j.HWIDs) == 1 {
		f.HWID = j.HWIDs[0]
	}
	setStatus(&f, e.Revision, e.Ended)
	f.Evidence = resumeEvidence(j)
	return f
}

func resumeEvidence(j *resume.Judgement) *evidence.Resume {
	ev := evidence.Resume{FieldsCount: j.FieldsCount, Ranks: j.Ranks, Of: j.Of, Apart: j.Apart, Hosts: slices.Clone(j.Hosts)}
	for i := range j.Fields {
		from := &j.Fields[i]
		to := evidence.ResumeField{Name: from.Name, Replica: from.Replica, Values: from.HeldCount, Told: from.Told, Decided: from.Decided}
		for _, h := range from.Held {
			to.Held = append(to.Held, evidence.ValueHeld{Value: h.Value, Count: h.Count, Ranks: slices.Clone(h.Ranks)})
		}
		ev.Fields = append(ev.Fields, to)
	}
	return &ev
}
