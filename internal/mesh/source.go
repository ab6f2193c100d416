// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// errNobody is of a list that would leave the mesh empty: more likely a file half
// written or a service without pods than the truth.
var errNobody = errors.New("got no members; want at least one")

// nobody is errNobody with the reasons that are known.
func (l *List) nobody() error {
	err := errNobody
	for i, p := range l.Problems {
		before := "; "
		if i == 0 {
			before = ": "
		}
		err = fmt.Errorf("%w%s%w", err, before, p)
	}
	return err
}

// Source reads the list of members.
type Source interface {
	// Members returns the list as it is now. Errors leave the caller with what it
	// had.
	Members(ctx context.Context) (List, error)
}

// Fixed is a list from a setting.
type Fixed struct{ list List }

// NewFixed reads the entries of a setting. There, a bad entry is an error.
func NewFixed(entries []string, port uint16) (*Fixed, error) {
	var l List
	for i, e := range entries {
		m, err := Parse(e, port)
		if err != nil {
			return nil, fmt.Errorf("read entry %d: %w", i+1, err)
		}
		l.keep(m)
	}
	l.order()
	if len(l.Members) == 0 {
		return nil, l.nobody()
	}
	return &Fixed{l}, nil
}

// Members returns the list of the setting.
func (f *Fixed) Members(context.Context) (List, error) {
	l := f.list
	l.Members = slices.Clone(l.Members)
	return l, nil
}

// Resolver is what DNS needs of *net.Resolver.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// DNS is a list of names, looked up anew each time. A name gives the addresses
// that it has, as a headless service of Kubernetes does for its pods; each is its
// own node. A name that begins with "_" is a service (SRV), whose targets are the
// nodes, with their own ports.
type DNS struct {
	resolver Resolver
	names    []string
	port     uint16
}

// maxNames are looked up; maxTargets of a service are.
const (
	maxNames   = 64
	maxTargets = 4096
)

// NewDNS returns a source that asks resolver, which may be net.DefaultResolver.
func NewDNS(resolver Resolver, names []string, port uint16) (*DNS, error) {
	if len(names) == 0 || len(names) > maxNames {
		return nil, fmt.Errorf("read members by DNS: got %d names; want 1 to %d", len(names), maxNames)
	}
	for _, n := range names {
		if n == "" || len(n) > maxNode || strings.ContainsAny(n, " \t\n/:") {
			return nil, fmt.Errorf("read members by DNS: got name %q; want a DNS name without a port", n)
		}
	}
	return &DNS{resolver, slices.Clone(names), port}, nil
}

// Members looks all names up. One that fails fails the list: half of it would be
// another graph.
func (d *DNS) Members(ctx context.Context) (List, error) {
	var l List
	for _, name := range d.names {
		var err error
		if strings.HasPrefix(name, "_") {
			err = d.service(ctx, name, &l)
		} else {
			err = d.host(ctx, "", name, d.port, &l)
		}
		if err != nil {
			return List{}, fmt.Errorf("read members by DNS: %w", err)
		}
	}
	l.order()
	if len(l.Members) == 0 {
		return List{}, fmt.Errorf("read members by DNS: %w", l.nobody())
	}
	return l, nil
}

func (d *DNS) host(ctx context.Context, node, name string, port uint16, l *List) error {
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return fmt.Errorf("look up %s: %w", name, err)
	}
	for _, a := range addrs {
		m, err := member(node, netip.AddrPortFrom(a.WithZone(""), port).String(), port)
		if err != nil {
			l.problem(&l.Bad, fmt.Errorf("read answer for %s: %w", name, err))
			continue
		}
		l.keep(m)
	}
	return nil
}

func (d *DNS) service(ctx context.Context, name string, l *List) error {
	_, targets, err := d.resolver.LookupSRV(ctx, "", "", name)
	if err != nil {
		return fmt.Errorf("look up %s: %w", name, err)
	}
	// The answer's order is by chance; all nodes must ask for the same ones.
	slices.SortFunc(targets, func(a, b *net.SRV) int {
		return cmp.Or(strings.Compare(a.Target, b.Target), cmp.Compare(a.Port, b.Port))
	})
	if over := len(targets) - maxTargets; over > 0 {
		l.problem(&l.Over, fmt.Errorf("read members: %s has %d targets; at most %d count", name, len(targets), maxTargets))
		l.Over += over - 1
		targets = targets[:maxTargets]
	}
	for _, t := range targets {
		node := strings.TrimSuffix(t.Target, ".")
		if err := d.host(ctx, node, t.Target, t.Port, l); err != nil {
			return err
		}
	}
	return nil
}

// Keeper asks a source and keeps its last good list.
type Keeper struct {
	source Source
	last   List
	// Failures counts the times that the source had no list.
	Failures int64
}

// NewKeeper returns a keeper that has asked nobody.
func NewKeeper(s Source) *Keeper { return &Keeper{source: s} }

// Refresh asks the source. The list is the last good one whatever the error says;
// changed tells whether its members are others than before.
func (k *Keeper) Refresh(ctx context.Context) (l List, changed bool, err error) {
	l, err = k.source.Members(ctx)
	if err != nil {
		k.Failures++
		return k.last, false, err
	}
	changed = !slices.Equal(l.Members, k.last.Members)
	k.last = l
	return l, changed, nil
}
