// SPDX-License-Identifier: Apache-2.0

package ncclrasreceiver

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/ras"
)

// Config configures the nccl_ras receiver.
type Config struct {
	// Endpoints are the addresses that are asked, host:port.
	Endpoints []string `mapstructure:"endpoints"`
	// PollInterval is how often each is asked.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// Timeout bounds one question and its answer.
	Timeout time.Duration `mapstructure:"timeout"`
	// Wait is how long the process that is asked waits for the job's others.
	Wait time.Duration `mapstructure:"wait"`
	// Heartbeat is how often states are told of while all goes on.
	Heartbeat time.Duration `mapstructure:"heartbeat"`
	// MaxBytes bounds an answer.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// MaxSeries bounds the series of each metric.
	MaxSeries int `mapstructure:"max_series"`

	// JobID and JobName name the job, of which RAS knows nothing.
	JobID   string `mapstructure:"job_id"`
	JobName string `mapstructure:"job_name"`

	_ struct{}
}

const (
	// defaultEndpoint is where NCCL listens unless NCCL_RAS_ADDR says otherwise.
	defaultEndpoint = "localhost:28028"
	// defaultPollInterval: an answer costs every process of the job a message, and two are
	// to come before a hang is named.
	defaultPollInterval = 10 * time.Second
	// defaultWait is what NCCL's own client has by default.
	defaultWait = 5 * time.Second
	// defaultTimeout adds what NCCL adds, 5 s, and the answer's way.
	defaultTimeout   = 15 * time.Second
	defaultHeartbeat = time.Minute
	// defaultMaxBytes are some 60,000 entries of 550 bytes: 4,000 ranks of 15 communicators.
	defaultMaxBytes  = 32 << 20
	defaultMaxSeries = 20000

	minInterval  = 100 * time.Millisecond
	maxBytes     = 1 << 30
	maxEndpoints = 64
	maxMaxSeries = 1 << 20
)

func newDefaultConfig() *Config {
	return &Config{
		Endpoints: []string{defaultEndpoint}, PollInterval: defaultPollInterval, Timeout: defaultTimeout, Wait: defaultWait,
		Heartbeat: defaultHeartbeat, MaxBytes: defaultMaxBytes, MaxSeries: defaultMaxSeries,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if len(c.Endpoints) == 0 {
		errs = append(errs, errors.New("check endpoints: got none; want at least one, as localhost:28028"))
	}
	check(len(c.Endpoints) <= maxEndpoints, "check endpoints: got %d; want at most %d", len(c.Endpoints), maxEndpoints)
	for _, e := range c.Endpoints {
		errs = append(errs, checkEndpoint(e))
	}
	check(c.PollInterval >= minInterval, "check poll_interval: got %v; want at least %v, with a unit", c.PollInterval, minInterval)
	check(c.Wait >= time.Second, "check wait: got %v; want at least 1s, of which NCCL takes whole ones", c.Wait)
	check(c.Timeout > c.Wait, "check timeout: got %v; want more than wait, %v", c.Timeout, c.Wait)
	check(c.Heartbeat >= c.PollInterval, "check heartbeat: got %v; want at least poll_interval, %v", c.Heartbeat, c.PollInterval)
	check(c.MaxBytes >= 1 && c.MaxBytes <= maxBytes, "check max_bytes: got %d; want 1 to %d", c.MaxBytes, maxBytes)
	check(c.MaxSeries >= 1 && c.MaxSeries <= maxMaxSeries, "check max_series: got %d; want 1 to %d", c.MaxSeries, maxMaxSeries)
	return errors.Join(errs...)
}

func checkEndpoint(e string) error {
	if err := ras.CheckAddress(e); err != nil {
		return fmt.Errorf("check endpoints: %w", err)
	}
	return nil
}
