// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/mesh"
)

// validatePeers checks what can be checked without looking at files and DNS.
func (c *Config) validatePeers() error {
	set := 0
	for _, is := range []bool{len(c.Peers.List) > 0, c.Peers.File != "", len(c.Peers.DNS) > 0} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("check peers: got %d of list, file and dns; want one", set)
	}
	_, err := c.source()
	return err
}

// source returns where the members are listed.
func (c *Config) source() (mesh.Source, error) {
	switch {
	case len(c.Peers.List) > 0:
		s, err := mesh.NewFixed(c.Peers.List, uint16(c.Port))
		if err != nil {
			return nil, fmt.Errorf("check peers::list: %w", err)
		}
		return s, nil
	case c.Peers.File != "":
		return mesh.NewFile(c.Peers.File, uint16(c.Port)), nil
	case len(c.Peers.DNS) > 0:
		s, err := mesh.NewDNS(net.DefaultResolver, c.Peers.DNS, uint16(c.Port))
		if err != nil {
			return nil, fmt.Errorf("check peers::dns: %w", err)
		}
		return s, nil
	default:
		return nil, errors.New("check peers: got none")
	}
}

// present tells the log when a list lacks an end point of this host: then nobody
// probes it, and what it probes itself may be probed by others less.
type present struct {
	mesh.Source
	own  []netip.AddrPort
	log  *zap.Logger
	told atomic.Bool
}

// Members asks the source.
func (p *present) Members(ctx context.Context) (mesh.List, error) {
	l, err := p.Source.Members(ctx)
	if err != nil {
		return l, err
	}
	var missing []string
	for _, own := range p.own {
		if !slices.ContainsFunc(l.Members, func(m mesh.Member) bool { return m.Addr == own }) {
			missing = append(missing, own.String())
		}
	}
	if !p.told.Swap(len(missing) > 0) && len(missing) > 0 {
		p.log.Warn("End points of this host are not among the members: nobody else knows to probe them", zap.Strings("endpoints", missing))
	}
	return l, nil
}
