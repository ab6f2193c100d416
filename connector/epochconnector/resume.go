// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/epoch/resume"
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
