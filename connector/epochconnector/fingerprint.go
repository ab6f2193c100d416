// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/epoch/replica"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
)

// ReplicasConfig is about what the parameters of replicas hash to.
type ReplicasConfig struct {
	// Silent is after how long a group counts no more of which no rank tells anything.
	Silent time.Duration `mapstructure:"silent"`
	// MaxGroups and MaxRanks bound the groups of all jobs, and the ranks of all of them.
	MaxGroups int `mapstructure:"max_groups"`
	MaxRanks  int `mapstructure:"max_ranks"`

	_ struct{}
}

func newDefaultReplicasConfig() ReplicasConfig {
	c := replica.NewDefaultConfig()
	return ReplicasConfig{Silent: c.Silent, MaxGroups: c.Groups, MaxRanks: c.Ranks}
}

func (c *ReplicasConfig) validate() error {
	var errs []error
	if c.Silent < time.Second {
		errs = append(errs, fmt.Errorf("check silent: got %v; want at least 1s, with a unit", c.Silent))
	}
	if c.MaxGroups < 1 {
		errs = append(errs, fmt.Errorf("check max_groups: got %d; want at least 1", c.MaxGroups))
	}
	if c.MaxRanks < 1 {
		errs = append(errs, fmt.Errorf("check max_ranks: got %d; want at least 1", c.MaxRanks))
	}
	return errors.Join(errs...)
}

func (c *Config) replicas() replica.Config {
	r := &c.Replicas
	return replica.Config{Silent: r.Silent, Groups: r.MaxGroups, Ranks: r.MaxRanks, Bytes: c.maxBytes() / 8, MaxEpisodes: c.MaxFindings}
}

// takeFingerprint takes what a slice of a rank's parameters hashes to.
func (h *hub) takeFingerprint(of pcommon.Resource, lr plog.LogRecord, now time.Time) error {
	v, _, err := resumemap.FingerprintFromLog(of, lr)
	if err == nil {
		h.replicas.Observe(&v, now)
	}
	return err
}

// What an operator would do next.
const (
	replicaAction   = "take the GPU of the minority out and test it (dcgmi diag), unless the rank has loaded another save; resume from a save from before the first step that differs"
	undecidedAction = "find which replica is wrong (three or more would tell): test the GPUs of all of them; resume from a save from before the first step that differs"
)

// replicaFindings makes what is told everywhere of replicas whose parameters differ.
func replicaFindings(episodes []replica.Episode, now time.Time) []model.Finding {
	return findingsOf(episodes, now, replicaFinding)
}

func replicaFinding(e *replica.Episode, now time.Time) model.Finding {
	j := &e.Judgement
	f := model.Finding{
		Time: now.UnixNano(), Start: e.Began.UnixNano(), Severity: model.SeverityError,
		JobID: e.Job, JobName: e.JobName, Incarnation: e.Incarnation,
		Kind: model.FindingEpoch, Class: model.ClassMixed, Cause: model.CauseUnknown, Op: model.OpFingerprint,
		Confidence: 1, Action: undecidedAction,
		ID: model.FindingID(e.Incarnation, model.FindingEpoch, model.OpFingerprint+" "+e.Group, e.Began.UnixNano()),
	}
	if j.MinorityCount > 0 {
		f.Ranks, f.RanksCount, f.Action = j.Minority, model.Some(int64(j.MinorityCount)), replicaAction
	}
	if j.MinorityCount == 1 {
		f.Rank = model.Some(j.Minority[0])
		if len(j.HWIDs) == 1 {
			f.HWID = j.HWIDs[0]
		}
	}
	if len(j.Hosts) == 1 {
		f.Host = j.Hosts[0]
	}
	setStatus(&f, e.Revision, e.Ended)
	f.Evidence = replicaEvidence(e)
	return f
}

func replicaEvidence(e *replica.Episode) *evidence.Replica {
	j := &e.Judgement
	ev := evidence.Replica{
		Group: e.Group, Step: j.Step, Start: j.Start, Total: j.Total, Hashes: j.HeldCount, Told: j.Told, Replicas: j.Replicas,
		Decided: j.Decided, Slices: j.Slices, Hosts: slices.Clone(j.Hosts), GPUs: slices.Clone(j.HWIDs),
	}
	for _, h := range j.Held {
		ev.Held = append(ev.Held, evidence.ValueHeld{Value: fmt.Sprintf("%016x", h.Hash), Count: h.Count, Ranks: slices.Clone(h.Ranks)})
	}
	return &ev
}
