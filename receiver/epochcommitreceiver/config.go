// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/lockstep-otel/lockstep/internal/epoch/bilateral"
)

// Config configures the epoch_commit receiver.
type Config struct {
	// ServerConfig is where domains tell.
	confighttp.ServerConfig `mapstructure:",squash"`
	// Interval is how often what has changed is emitted.
	Interval time.Duration `mapstructure:"interval"`
	// Heartbeat is how often all is emitted again.
	Heartbeat time.Duration `mapstructure:"heartbeat"`
	// Silent is after which time a job that nobody tells of is forgotten.
	Silent time.Duration `mapstructure:"silent"`
	// MaxJobs and MaxDomains bound what is known at once, domains those of all jobs.
	MaxJobs    int `mapstructure:"max_jobs"`
	MaxDomains int `mapstructure:"max_domains"`
	// Node names this collector in observations; empty: its host name.
	Node string `mapstructure:"node"`

	_ struct{}
}

const (
	// defaultEndpoint is the port after the timeline's. Ranks of other nodes need another address.
	defaultEndpoint  = "localhost:13181"
	defaultInterval  = time.Second
	defaultHeartbeat = 5 * time.Minute
	// defaultSilent keeps a job that stands still, as in a debugger, where people look for it. Domains
	// that live tell every 15 s.
	defaultSilent = 24 * time.Hour
	// defaultReadTimeout is for a message of some kilobytes, and for the time that its answer may wait:
	// the server takes it for both.
	defaultReadTimeout = bilateral.MaxWait + 5*time.Second
	defaultMaxJobs     = 1024
	// defaultMaxDomains are two jobs of the largest size.
	defaultMaxDomains = 2 * bilateral.MaxDomains

	// maxBody: a message with eight slots and names of full length has less than 4 KiB.
	maxBody = 16 << 10

	minInterval   = 100 * time.Millisecond
	maxMaxJobs    = 1 << 20
	maxMaxDomains = 1 << 22
)

func newDefaultConfig() *Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = defaultEndpoint
	server.MaxRequestBodySize = maxBody
	server.ReadTimeout = defaultReadTimeout
	return &Config{
		ServerConfig: server, Interval: defaultInterval, Heartbeat: defaultHeartbeat, Silent: defaultSilent,
		MaxJobs: defaultMaxJobs, MaxDomains: defaultMaxDomains,
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
	check(c.NetAddr.Endpoint != "", "check endpoint: got none; want host:port, such as %s", defaultEndpoint)
	check(c.Interval >= minInterval, "check interval: got %v; want at least %v, with a unit", c.Interval, minInterval)
	check(c.Heartbeat >= c.Interval, "check heartbeat: got %v; want at least interval, %v", c.Heartbeat, c.Interval)
	check(c.Silent >= time.Minute, "check silent: got %v; want at least 1m, with a unit", c.Silent)
	check(c.MaxJobs >= 1 && c.MaxJobs <= maxMaxJobs, "check max_jobs: got %d; want 1 to %d", c.MaxJobs, maxMaxJobs)
	check(c.MaxDomains >= 1 && c.MaxDomains <= maxMaxDomains, "check max_domains: got %d; want 1 to %d", c.MaxDomains, maxMaxDomains)
	check(c.WriteTimeout == 0 || c.WriteTimeout > bilateral.MaxWait, "check write_timeout: got %v; want more than %v, for which answers may wait", c.WriteTimeout, bilateral.MaxWait)
	check(c.ReadTimeout == 0 || c.ReadTimeout > bilateral.MaxWait, "check read_timeout: got %v; want more than %v, for which answers may wait", c.ReadTimeout, bilateral.MaxWait)
	return errors.Join(errs...)
}
