// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

func at(node, addr string) Member { return Member{node, netip.MustParseAddrPort(addr)} }

func TestParse(t *testing.T) {
	for entry, want := range map[string]Member{
		"a 10.0.0.1":               at("a", "10.0.0.1:18862"),
		"  a\t10.0.0.1:7  ":        at("a", "10.0.0.1:7"),
		"10.0.0.1":                 at("10.0.0.1", "10.0.0.1:18862"),
		"a fd00::1":                at("a", "[fd00::1]:18862"),
		"a [fd00::1]":              at("a", "[fd00::1]:18862"),
		"a [fd00::1]:9":            at("a", "[fd00::1]:9"),
		"::ffff:10.0.0.1":          at("10.0.0.1", "10.0.0.1:18862"),
		"a [::ffff:10.0.0.1]:1234": at("a", "10.0.0.1:1234"),
	} {
		got, err := Parse(entry, 18862)
		require.NoError(t, err, entry)
		assert.Equal(t, want, got, entry)
	}
	for entry, want := range map[string]string{
		"":                                `got 0 words in ""; want [node] address`,
		"a b c":                           `got 3 words in "a b c"; want [node] address`,
		"a b":                             `got address "b"; want an IP address, or one with a port`,
		"a 10.0.0.1:0":                    `got port 0 in "10.0.0.1:0"; want 1 to 65535`,
		"a 10.0.0.1:99999":                `got address "10.0.0.1:99999"; want an IP address, or one with a port`,
		"fe80::1%eth0":                    `got address "fe80::1%eth0"; want one without a zone, which is another at every host`,
		"0.0.0.0":                         `got address "0.0.0.0"; want one of a host`,
		"a ff02::1":                       `got address "ff02::1"; want one of a host`,
		strings.Repeat("a", 254) + " ::1": `got node of 254 bytes; want at most 253`,
		strings.Repeat("a", 513):          `got 513 bytes; want at most 512`,
	} {
		_, err := Parse(entry, 18862)
		require.EqualError(t, err, "parse member: "+want)
	}
}

func TestSelf(t *testing.T) {
	ms := []Member{at("a", "10.0.0.1:1"), at("b", "10.0.0.2:1")}
	node, ok := Self(ms, []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.2")})
	assert.True(t, ok)
	assert.Equal(t, "b", node)
	_, ok = Self(ms, nil)
	assert.False(t, ok)
}

// TestOrder: a list is the same whatever the order of its entries, addresses that
// two nodes claim are nobody's, and the limits hold.
func TestOrder(t *testing.T) {
	entries := []string{"b 10.0.0.2", "a 10.0.0.1", "c 10.0.0.3", "a 10.0.0.1", "x 10.0.0.9", "y 10.0.0.9"}
	want := []Member{at("a", "10.0.0.1:1"), at("b", "10.0.0.2:1"), at("c", "10.0.0.3:1")}
	for range 2 {
		f, err := NewFixed(entries, 1)
		require.NoError(t, err)
		l, err := f.Members(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, l.Members)
		assert.Equal(t, 2, l.Duplicates)
		require.Len(t, l.Problems, 2)
		assert.EqualError(t, l.Problems[0], `read members: address 10.0.0.9:1 is said to be of 2 nodes, "x" and "y" among them; want one: all these entries are left out`)
		l.Members[0].Node = "changed by who got it"
		entries[0], entries[4], entries[5] = entries[5], entries[0], entries[4]
	}
	l := List{Members: cluster(2, MaxPerNode+3)}
	l.order()
	assert.Len(t, l.Members, 2*MaxPerNode)
	assert.Equal(t, 6, l.Over)
	l = List{Members: cluster(MaxMembers, 1)}
	l.Members = append(l.Members, at("zz", "11.0.0.1:1"))
	l.order()
	assert.Len(t, l.Members, MaxMembers)
	assert.Equal(t, 1, l.Over)

	_, err := NewFixed([]string{"a 10.0.0.1", "a"}, 1)
	require.ErrorContains(t, err, `read entry 2: parse member: got address "a"`)
	_, err = NewFixed(nil, 1)
	require.ErrorIs(t, err, errNobody)
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "members")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	f := NewFile(path, 18862)
	k := NewKeeper(f)
	_, _, err := k.Refresh(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)

	write("# rack 1\nnode-b 10.0.0.2:7 # rail 0\n\nnonsense here too\nnode-a 10.0.0.1\n")
	l, changed, err := k.Refresh(t.Context())
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, []Member{at("node-a", "10.0.0.1:18862"), at("node-b", "10.0.0.2:7")}, l.Members)
	assert.Equal(t, 1, l.Bad)
	require.Len(t, l.Problems, 1)
	require.EqualError(t, l.Problems[0], path+`:4: parse member: got 3 words in "nonsense here too"; want [node] address`)
	l, changed, err = k.Refresh(t.Context())
	require.NoError(t, err)
	assert.False(t, changed)
	assert.Len(t, l.Members, 2)
	assert.Equal(t, 1, l.Bad, "still bad")

	// As long as before, and perhaps within the file system's resolution.
	write("# rack 1\nnode-b 10.0.0.2:8 # rail 0\n\nnonsense here too\nnode-a 10.0.0.1\n")
	l, changed, err = k.Refresh(t.Context())
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, uint16(8), l.Members[1].Addr.Port())

	for text, want := range map[string]string{
		"":               path + ": got no members; want at least one",
		"what is this\n": path + `: got no members; want at least one: ` + path + `:1: parse member: got 3 words in "what is this"; want [node] address`,
		"a b c\na ::1\nb ::1\n": path + `: got no members; want at least one: ` + path + `:1: parse member: got 3 words in "a b c"; want [node] address; ` +
			`read members: address [::1]:18862 is said to be of 2 nodes, "a" and "b" among them`,
		"[\n{\"address\":\"10.0": path + ":2: unexpected EOF",
		"[1,\n2,,]":              path + ":2: invalid character",
		"[]":                     path + ": got no members; want at least one",
		`[{"address":"::1"}`:     path + ":1: unexpected EOF",
	} {
		write(text)
		l, changed, err = k.Refresh(t.Context())
		require.ErrorContains(t, err, "read members: "+want, text)
		assert.False(t, changed)
		assert.Len(t, l.Members, 2, "the last good list stays")
	}
	assert.Equal(t, int64(8), k.Failures)

	write(`[
  {"node": "a", "address": "10.0.0.1"},
  {"node": "b", "address": true},
  {"address": "10.0.0.3:5"},
  {"node": "d", "address": "10.0.0.4:0"}, {"node": "d d", "address": "10.0.0.5"}
]`)
	l, _, err = k.Refresh(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []Member{at("10.0.0.3", "10.0.0.3:5"), at("a", "10.0.0.1:18862")}, l.Members)
	assert.Equal(t, 3, l.Bad)
	require.Len(t, l.Problems, 3)
	require.ErrorContains(t, l.Problems[2], path+`:5: parse member: got node "d d"; want UTF-8 without blanks`)
	require.ErrorContains(t, l.Problems[0], path+":3: json: cannot unmarshal bool")
	require.ErrorContains(t, l.Problems[1], path+":5: parse member: got port 0")

	require.NoError(t, os.Truncate(path, maxFile+1))
	_, _, err = k.Refresh(t.Context())
	require.ErrorContains(t, err, "got more than 16777216 bytes")
}

func TestManyBadLinesAreCounted(t *testing.T) {
	text := strings.Repeat("what is this\n", 100) + "10.0.0.1\n"
	l, err := parse("f", []byte(text), 1)
	require.NoError(t, err)
	assert.Equal(t, 100, l.Bad)
	assert.Len(t, l.Problems, maxProblems)
}

// FuzzParse: no list crashes, and what comes out is sorted, single and bounded.
func FuzzParse(f *testing.F) {
	f.Add([]byte("a 10.0.0.1\nb [::1]:7 # x\n"))
	f.Add([]byte(`[{"node":"a","address":"10.0.0.1"},{"address":"fe80::1%eth0"}]`))
	f.Add([]byte("[\n1,{}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parse("f", text, 18862)
		if err != nil {
			require.Empty(t, l.Members)
			return
		}
		seen := map[netip.AddrPort]bool{}
		for i, m := range l.Members {
			require.False(t, seen[m.Addr])
			seen[m.Addr] = true
			require.True(t, m.Node != "" && m.Addr.IsValid() && m.Addr.Port() != 0)
			require.True(t, i == 0 || l.Members[i-1].compare(m) < 0)
			again, err := Parse(m.Node+" "+m.Addr.String(), 1)
			require.NoError(t, err)
			require.Equal(t, m, again)
		}
		Neighbours(l.Members, l.Members[0].Node, 4, 1)
	})
}

// server is a DNS server on UDP with a zone.
type server struct {
	conn *net.UDPConn
	done chan struct{}
}

func serve(t *testing.T, answer func(q dnsmessage.Question, b *dnsmessage.Builder) dnsmessage.RCode) *net.Resolver {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	s := &server{conn, make(chan struct{})}
	go s.run(answer)
	t.Cleanup(func() {
		conn.Close()
		<-s.done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

func (s *server) run(answer func(dnsmessage.Question, *dnsmessage.Builder) dnsmessage.RCode) {
	defer close(s.done)
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		var p dnsmessage.Parser
		h, err := p.Start(buf[:n])
		if err != nil {
			continue
		}
		q, err := p.Question()
		if err != nil {
			continue
		}
		// The code is known once the answers are.
		build := func(code dnsmessage.RCode) ([]byte, dnsmessage.RCode) {
			b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: h.ID, Response: true, Authoritative: true, RCode: code})
			_ = b.StartQuestions()
			_ = b.Question(q)
			_ = b.StartAnswers()
			code = answer(q, &b)
			out, _ := b.Finish()
			return out, code
		}
		out, code := build(dnsmessage.RCodeSuccess)
		if code != dnsmessage.RCodeSuccess {
			out, _ = build(code)
		}
		_, _ = s.conn.WriteToUDPAddrPort(out, from)
	}
}

// TestDNS: a headless service's addresses, and a service's targets with their
// ports, from a real server.
func TestDNS(t *testing.T) {
	broken := false
	r := serve(t, func(q dnsmessage.Question, b *dnsmessage.Builder) dnsmessage.RCode {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
		a := func(last byte) { _ = b.AResource(h, dnsmessage.AResource{A: [4]byte{10, 0, 0, last}}) }
		switch name := q.Name.String(); {
		case broken:
			return dnsmessage.RCodeServerFailure
		case name == "agents.ns.svc.cluster.local." && q.Type == dnsmessage.TypeA:
			a(2)
			a(1)
		case name == "agents.ns.svc.cluster.local." && q.Type == dnsmessage.TypeAAAA:
			_ = b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: netip.MustParseAddr("fd00::1").As16()})
		case name == "_probe._udp.example.org." && q.Type == dnsmessage.TypeSRV:
			for i, target := range []string{"n1.example.org.", "n2.example.org."} {
				_ = b.SRVResource(h, dnsmessage.SRVResource{Port: uint16(7000 + i), Target: dnsmessage.MustNewName(target)})
			}
		case strings.HasSuffix(name, ".example.org.") && q.Type == dnsmessage.TypeA:
			a(name[1])
		case strings.HasSuffix(name, ".example.org."):
		case name == "nobody.svc.":
		default:
			return dnsmessage.RCodeNameError
		}
		return dnsmessage.RCodeSuccess
	})
	d, err := NewDNS(r, []string{"agents.ns.svc.cluster.local.", "_probe._udp.example.org."}, 18862)
	require.NoError(t, err)
	k := NewKeeper(d)
	l, changed, err := k.Refresh(t.Context())
	require.NoError(t, err)
	assert.True(t, changed)
	want := []Member{
		at("10.0.0.1", "10.0.0.1:18862"), at("10.0.0.2", "10.0.0.2:18862"), at("fd00::1", "[fd00::1]:18862"),
		at("n1.example.org", "10.0.0.49:7000"), at("n2.example.org", "10.0.0.50:7001"),
	}
	assert.Equal(t, want, l.Members)

	broken = true
	l, changed, err = k.Refresh(t.Context())
	require.ErrorContains(t, err, "read members by DNS: look up agents.ns.svc.cluster.local.")
	assert.False(t, changed)
	assert.Equal(t, want, l.Members)
	broken = false

	d, err = NewDNS(r, []string{"unknown.svc."}, 1)
	require.NoError(t, err)
	_, err = d.Members(t.Context())
	var notFound *net.DNSError
	require.ErrorAs(t, err, &notFound)
	assert.True(t, notFound.IsNotFound)
}

// TestTooManyAreTheSameEverywhere: of a list beyond the limit all nodes keep the same
// entries, or each would compute another graph.
func TestTooManyAreTheSameEverywhere(t *testing.T) {
	const many = 3*MaxMembers + 5 // is cut while it is read, too
	var entries []string
	for i := range many {
		entries = append(entries, fmt.Sprintf("n%06d 10.%d.%d.%d\n", i, i>>16, i>>8&255, i&255))
	}
	forward, err := parse("a", []byte(strings.Join(entries, "")), 1)
	require.NoError(t, err)
	slices.Reverse(entries)
	back, err := parse("a", []byte(strings.Join(entries, "")), 1)
	require.NoError(t, err)
	require.Len(t, forward.Members, MaxMembers)
	assert.Equal(t, "n000000", forward.Members[0].Node)
	assert.Equal(t, fmt.Sprintf("n%06d", MaxMembers-1), forward.Members[MaxMembers-1].Node)
	assert.True(t, slices.Equal(forward.Members, back.Members))
	assert.Equal(t, many-MaxMembers, forward.Over)
	assert.Equal(t, many-MaxMembers, back.Over)

	var targets []*net.SRV
	for i := range maxTargets + 9 {
		targets = append(targets, &net.SRV{Target: fmt.Sprintf("n%05d.", i), Port: 1})
	}
	ask := func() List {
		d, err := NewDNS(naming{targets}, []string{"_a._udp.b"}, 1)
		require.NoError(t, err)
		l, err := d.Members(t.Context())
		require.NoError(t, err)
		return l
	}
	one := ask()
	assert.Equal(t, 9, one.Over)
	slices.Reverse(targets)
	assert.True(t, slices.Equal(one.Members, ask().Members))
}

// naming answers for a service and gives each target n<i> the i-th address.
type naming struct{ srv []*net.SRV }

func (r naming) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	var i int
	_, err := fmt.Sscanf(name, "n%d.", &i)
	return []netip.Addr{netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})}, err
}

func (r naming) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", slices.Clone(r.srv), nil
}

// resolver answers from memory, for what a server would not say.
type resolver struct {
	addrs []netip.Addr
	srv   []*net.SRV
}

func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return r.addrs, nil
}

func (r resolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	if r.srv == nil {
		return "", nil, errors.New("no such service")
	}
	return "", r.srv, nil
}

func TestDNSIsBounded(t *testing.T) {
	var many []netip.Addr
	for i := range MaxMembers + 10 {
		many = append(many, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	d, err := NewDNS(resolver{addrs: many}, []string{"x"}, 1)
	require.NoError(t, err)
	l, err := d.Members(t.Context())
	require.NoError(t, err)
	assert.Len(t, l.Members, MaxMembers)
	assert.Equal(t, 10, l.Over)

	var targets []*net.SRV
	for i := range maxTargets + 1 {
		targets = append(targets, &net.SRV{Target: fmt.Sprintf("n%d.", i), Port: uint16(i + 1)})
	}
	one := resolver{addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("0.0.0.0")}, srv: targets}
	d, err = NewDNS(one, []string{"_a._udp.b"}, 1)
	require.NoError(t, err)
	l, err = d.Members(t.Context())
	require.NoError(t, err)
	assert.Len(t, l.Members, maxTargets)
	assert.Equal(t, 1, l.Over)
	assert.Equal(t, maxTargets, l.Bad, "0.0.0.0 is no host")

	d, err = NewDNS(resolver{}, []string{"x"}, 1)
	require.NoError(t, err)
	_, err = d.Members(t.Context())
	require.ErrorIs(t, err, errNobody)
	d, err = NewDNS(resolver{}, []string{"_x"}, 1)
	require.NoError(t, err)
	_, err = d.Members(t.Context())
	require.EqualError(t, err, "read members by DNS: look up _x: no such service")

	for _, names := range [][]string{nil, {""}, {"a b"}, {"a:1"}, {strings.Repeat("a", 254)}, make([]string, maxNames+1)} {
		_, err := NewDNS(resolver{}, names, 1)
		require.ErrorContains(t, err, "read members by DNS: got ")
	}
}
