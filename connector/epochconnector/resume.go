// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch/resume"
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
