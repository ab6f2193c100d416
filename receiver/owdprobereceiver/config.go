// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/lockstep-otel/lockstep/internal/hostid"
	"github.com/lockstep-otel/lockstep/internal/probe"
)

// Config configures the owd_probe receiver.
type Config struct {
	// Node names this node among the members; empty: the host's name.
	Node string `mapstructure:"node"`
	// HostID names the host in the names of its clocks; empty: LOCKSTEP_HOST_ID of the
	// environment, else /etc/machine-id, else the host's name.
	HostID string `mapstructure:"host_id"`
	// Endpoints are addresses of this host, with a port or without. Each probes
	// and is probed.
	Endpoints []string `mapstructure:"endpoints"`
	// Port is where end points answer that name no port, and peers that name none.
	Port int `mapstructure:"port"`
	// Peers says who the members are.
	Peers PeersConfig `mapstructure:"peers"`
	// Neighbours is how many others each end point probes.
	Neighbours int `mapstructure:"neighbours"`
	// Seed makes the graph of who probes whom, and is the same on all nodes.
	Seed uint64 `mapstructure:"seed"`
	// Rate is packets a second to each neighbour.
	Rate float64 `mapstructure:"rate"`
	// Paths is the most UDP source ports that a neighbour is probed from.
	Paths int `mapstructure:"paths"`
	// Window is the time that an edge is made of.
	Window time.Duration `mapstructure:"window"`
	// PairInterval is how often the raw and the real-time clock of this host are told of.
	PairInterval time.Duration `mapstructure:"pair_interval"`
	// Auth signs packets; what is not signed with the same key counts for nothing.
	Auth AuthConfig `mapstructure:"auth"`
	// Hardware asks the NICs for stamps.
	Hardware bool `mapstructure:"hardware"`
	// PureWithin makes evidence of clocks only of pairs of packets whose spacing
	// changed by no more on their way; 0: of all.
	PureWithin time.Duration `mapstructure:"pure_within"`
	// TimelineID names a timeline extension that is given the edges, too.
	TimelineID *component.ID `mapstructure:"timeline"`
	// MetricsInterval is how often metrics are sent.
	MetricsInterval time.Duration `mapstructure:"metrics_interval"`
	// MaxSeries is the most series of each metric.
	MaxSeries int `mapstructure:"max_series"`
	// MaxClocks is the most clocks of peers that are estimated.
	MaxClocks int `mapstructure:"max_clocks"`

	_ struct{}
}

// PeersConfig says who the members are; of list, file and dns one is set.
type PeersConfig struct {
	// List names them: "node address", or an address alone, with a port or without.
	List []string `mapstructure:"list"`
	// File is looked at again and again: a member a line, or JSON.
	File string `mapstructure:"file"`
	// DNS are names whose addresses are the members, as of a Kubernetes headless
	// service. A name that begins with "_" is asked for SRV records.
	DNS []string `mapstructure:"dns"`
	// Refresh is how often file and dns are looked at.
	Refresh time.Duration `mapstructure:"refresh"`
}

// AuthConfig holds the key; at most one is set.
type AuthConfig struct {
	Key     configopaque.String `mapstructure:"key"`
	KeyFile string              `mapstructure:"key_file"`
}

const (
	defaultRefresh         = 30 * time.Second
	defaultMetricsInterval = 10 * time.Second
	// defaultMaxSeries has room for 64 end points with 10 neighbours, 4 paths and 2
	// directions each.
	defaultMaxSeries = 8192
	maxMaxSeries     = 1 << 20
	maxMaxClocks     = 1 << 16
	minInterval      = 100 * time.Millisecond
)

func newDefaultConfig() *Config {
	return &Config{
		Port: probe.DefaultPort, Peers: PeersConfig{Refresh: defaultRefresh},
		Neighbours: probe.DefaultK, Rate: probe.DefaultRate, Paths: probe.DefaultPaths, Window: probe.DefaultWindow, PairInterval: probe.DefaultPairInterval,
		MetricsInterval: defaultMetricsInterval, MaxSeries: defaultMaxSeries, MaxClocks: probe.DefaultMaxClocks,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	_, err := c.locals()
	return errors.Join(err, c.validateHost(), c.validatePeers(), c.validateAuth(), c.validateNumbers(), c.validateTimes())
}

func (c *Config) validateHost() error {
	if err := hostid.Check(c.HostID); err != nil {
		return fmt.Errorf("check host_id: %w", err)
	}
	return nil
}

// locals returns the end points.
func (c *Config) locals() ([]netip.AddrPort, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("check endpoints: got none; want the addresses of this host that the others reach")
	}
	var errs []error
	var out []netip.AddrPort
	for i, text := range c.Endpoints {
		at, err := parseAddress(text, uint16(c.Port))
		if err != nil {
			errs = append(errs, fmt.Errorf("check endpoints[%d]: %w", i, err))
		}
		out = append(out, at)
	}
	return out, errors.Join(errs...)
}

// parseAddress reads an address, with a port or without.
func parseAddress(text string, port uint16) (netip.AddrPort, error) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at, nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("got %q; want an IP address, with a port or without", text)
	}
	return netip.AddrPortFrom(addr, port), nil
}

func (c *Config) validateAuth() error {
	switch {
	case c.Auth.Key != "" && c.Auth.KeyFile != "":
		return errors.New("check auth: got key and key_file; want one of them")
	case c.Auth.Key != "" && len(c.Auth.Key) < minKeyBytes:
		return fmt.Errorf("check auth::key: got %d bytes; want at least %d", len(c.Auth.Key), minKeyBytes)
	}
	return nil
}

func (c *Config) validateNumbers() error {
	var errs []error
	for _, f := range []struct {
		name             string
		got, least, most float64
	}{
		{"port", float64(c.Port), 1, 65535},
		{"neighbours", float64(c.Neighbours), 1, probe.MaxK},
		{"rate", c.Rate, probe.MinRate, probe.MaxRate},
		{"paths", float64(c.Paths), 1, probe.MaxPaths},
		{"max_series", float64(c.MaxSeries), 1, maxMaxSeries},
		{"max_clocks", float64(c.MaxClocks), 1, maxMaxClocks},
	} {
		if !(f.got >= f.least && f.got <= f.most) {
			errs = append(errs, fmt.Errorf("check %s: got %v; want %v to %v", f.name, f.got, f.least, f.most))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateTimes() error {
	var errs []error
	for _, f := range []struct {
		name             string
		got, least, most time.Duration
	}{
		{"window", c.Window, probe.MinWindow, probe.MaxWindow},
		{"pair_interval", c.PairInterval, probe.MinPairInterval, probe.MaxPairInterval},
		{"pure_within", c.PureWithin, 0, time.Second},
		{"metrics_interval", c.MetricsInterval, minInterval, time.Hour},
		{"peers::refresh", c.Peers.Refresh, minInterval, time.Hour},
	} {
		if f.got < f.least || f.got > f.most {
			errs = append(errs, fmt.Errorf("check %s: got %v; want %v to %v", f.name, f.got, f.least, f.most))
		}
	}
	return errors.Join(errs...)
}
