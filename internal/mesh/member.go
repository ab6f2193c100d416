// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a list.
const (
	MaxMembers = 65536
	// MaxPerNode is how many end points one node may have.
	MaxPerNode = 64
	maxNode    = 253 // bytes; a DNS name's limit
	maxEntry   = 512 // bytes of one entry
)

// Member is an end point: an address of a node at which it is probed.
type Member struct {
	Node string
	Addr netip.AddrPort
}

func (m Member) compare(o Member) int {
	return cmp.Or(strings.Compare(m.Node, o.Node), m.Addr.Compare(o.Addr))
}

// Parse reads an entry of a list: "node address", or an address alone, which is
// then its own node. An address without a port has the one given.
func Parse(entry string, port uint16) (Member, error) {
	if len(entry) > maxEntry {
		return Member{}, fmt.Errorf("parse member: got %d bytes; want at most %d", len(entry), maxEntry)
	}
	switch f := strings.Fields(entry); len(f) {
	case 1:
		return member("", f[0], port)
	case 2:
		return member(f[0], f[1], port)
	default:
		return Member{}, fmt.Errorf("parse member: got %d words in %q; want [node] address", len(f), entry)
	}
}

func member(node, address string, port uint16) (Member, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		ip, bare := netip.ParseAddr(strings.Trim(address, "[]"))
		if bare != nil {
			return Member{}, fmt.Errorf("parse member: got address %q; want an IP address, or one with a port", address)
		}
		at = netip.AddrPortFrom(ip, port)
	}
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	switch {
	case at.Port() == 0:
		return Member{}, fmt.Errorf("parse member: got port 0 in %q; want 1 to 65535", address)
	case at.Addr().Zone() != "":
		return Member{}, fmt.Errorf("parse member: got address %q; want one without a zone, which is another at every host", address)
	case at.Addr().IsUnspecified() || at.Addr().IsMulticast():
		return Member{}, fmt.Errorf("parse member: got address %q; want one of a host", address)
	case len(node) > maxNode:
		return Member{}, fmt.Errorf("parse member: got node of %d bytes; want at most %d", len(node), maxNode)
	case !utf8.ValidString(node) || strings.ContainsFunc(node, odd):
		return Member{}, fmt.Errorf("parse member: got node %q; want UTF-8 without blanks", node)
	case node == "":
		node = at.Addr().String()
	}
	return Member{Node: node, Addr: at}, nil
}

// odd are characters that no name has.
func odd(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// Self is the node under which one of these addresses is listed; false where none
// is.
func Self(members []Member, local []netip.Addr) (string, bool) {
	for _, m := range members {
		if slices.Contains(local, m.Addr.Addr()) {
			return m.Node, true
		}
	}
	return "", false
}

// List is what a source knows.
type List struct {
	Members []Member // sorted, each address once
	// What was left out:
	Bad        int // entries that could not be read
	Duplicates int // entries whose address two nodes claim: nobody knows whose it is
	Over       int // entries beyond MaxMembers or MaxPerNode
	// Problems explains the first of them.
	Problems []error
}

// maxProblems are explained; more of the same explain nothing.
const maxProblems = 16

func (l *List) problem(count *int, err error) {
	*count++
	if len(l.Problems) < maxProblems {
		l.Problems = append(l.Problems, err)
	}
}

// keep adds a member, and drops some where they become too many to keep.
func (l *List) keep(m Member) {
	l.Members = append(l.Members, m)
	if len(l.Members) == 2*MaxMembers {
		l.cut()
	}
}

// cut keeps the first MaxMembers by their order, so that all nodes keep the same
// ones however their lists are ordered.
func (l *List) cut() {
	slices.SortFunc(l.Members, Member.compare)
	l.Members = slices.Compact(l.Members)
	if over := len(l.Members) - MaxMembers; over > 0 {
		l.Members = l.Members[:MaxMembers]
		l.problem(&l.Over, fmt.Errorf("read members: got more than %d; left out those that come last by node and address", MaxMembers))
		l.Over += over - 1
	}
}

// order sorts the members and leaves out what the limits forbid. It depends on the
// entries and not on their order: DNS turns its answers around.
func (l *List) order() {
	l.cut()
	in := l.Members
	claims := make(map[netip.AddrPort][]string, len(in))
	for _, m := range in {
		claims[m.Addr] = append(claims[m.Addr], m.Node)
	}
	out, node, of := in[:0], "", 0
	for _, m := range in {
		if m.Node != node {
			node, of = m.Node, 0
		}
		switch {
		case len(claims[m.Addr]) > 1:
			l.problem(&l.Duplicates, fmt.Errorf("read members: address %s is said to be of %d nodes, %q and %q among them; want one: all these entries are left out",
				m.Addr, len(claims[m.Addr]), claims[m.Addr][0], claims[m.Addr][1]))
		case of == MaxPerNode:
			l.problem(&l.Over, fmt.Errorf("read members: node %q has more than %d addresses", m.Node, MaxPerNode))
		default:
			of++
			out = append(out, m)
		}
	}
	l.Members = out
}
