// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch/replica"
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
