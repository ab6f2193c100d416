// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/lockstep-otel/lockstep/internal/component/web"
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
	// MaxConnections bounds the connections of all addresses.
	MaxConnections int `mapstructure:"max_connections"`
	// PerPeer bounds what one address may have of all that, and ask for.
	PerPeer PeerConfig `mapstructure:"per_peer"`
	// Node names this collector in observations; empty: its host name.
	Node string `mapstructure:"node"`

	_ struct{}
}

// PeerConfig bounds one remote address; of IPv6 the network of 64 bits that it is in.
type PeerConfig struct {
	MaxJobs        int `mapstructure:"max_jobs"`
	MaxDomains     int `mapstructure:"max_domains"`
	MaxConnections int `mapstructure:"max_connections"`
	// MaxMessages is how many may be under way, those included that wait for their answers.
	MaxMessages int `mapstructure:"max_messages"`
	// MessagesPerSecond are those taken, and new connections, over ten seconds.
	MessagesPerSecond float64 `mapstructure:"messages_per_second"`

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
	// defaultMaxConnections is one of each rank of a large job.
	defaultMaxConnections = 1 << 16
	// defaultShare is the part of all jobs and domains that one address may hold.
	defaultShare = 8
	// defaultPeerConnections is for a gateway of a network, behind which some thousand ranks are.
	defaultPeerConnections = 4096
	// defaultRate is the messages a second of so many ranks that send a heartbeat every 15 s and save now
	// and then. At a tenth of a millisecond each they take a tenth of a core.
	defaultRate = 1000

	// maxBody: a message with eight slots and names of full length has less than 4 KiB.
	maxBody = 16 << 10

	minInterval   = 100 * time.Millisecond
	maxMaxJobs    = 1 << 20
	maxMaxDomains = 1 << 22
)

func newDefaultConfig() *Config {
	server := web.DefaultConfig(defaultEndpoint)
	server.MaxRequestBodySize, server.ReadTimeout = maxBody, defaultReadTimeout
	return &Config{
		ServerConfig: server, Interval: defaultInterval, Heartbeat: defaultHeartbeat, Silent: defaultSilent,
		MaxJobs: defaultMaxJobs, MaxDomains: defaultMaxDomains, MaxConnections: defaultMaxConnections,
		PerPeer: PeerConfig{
			MaxJobs: defaultMaxJobs / defaultShare, MaxDomains: defaultMaxDomains / defaultShare,
			MaxConnections: defaultPeerConnections, MaxMessages: defaultPeerConnections, MessagesPerSecond: defaultRate,
		},
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
	check(c.MaxConnections >= 1, "check max_connections: got %d; want 1 or more", c.MaxConnections)
	p := &c.PerPeer
	for name, n := range map[string]int{"max_jobs": p.MaxJobs, "max_domains": p.MaxDomains, "max_connections": p.MaxConnections, "max_messages": p.MaxMessages} {
		check(n >= 1, "check per_peer::%s: got %d; want 1 or more", name, n)
	}
	check(p.MessagesPerSecond > 0, "check per_peer::messages_per_second: got %v; want more than 0", p.MessagesPerSecond)
	errs = append(errs, web.CheckConfig(&c.ServerConfig))
	return errors.Join(errs...)
}

func (c *Config) limits() web.Limits {
	p := &c.PerPeer
	return web.Limits{Connections: c.MaxConnections, PeerConnections: p.MaxConnections, PeerRequests: p.MaxMessages, PeerRate: p.MessagesPerSecond}
}

func (c *Config) board() bilateral.Config {
	return bilateral.Config{
		MaxJobs: c.MaxJobs, MaxDomains: c.MaxDomains, PeerJobs: c.PerPeer.MaxJobs, PeerDomains: c.PerPeer.MaxDomains, Silent: c.Silent,
	}
}
