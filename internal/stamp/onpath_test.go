// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onPath is who stands between two senders and a reflector that share a key: it delays,
// drops, repeats, redirects, splices, cuts and changes what passes.
type onPath struct {
	*wire
	rng       *rand.Rand
	senders   [2]*Sender
	now       int64
	toThere   [][]byte // all that ever passed
	toSender  [][]byte
	delivered int
	refused   map[string]int64
}

const keptPackets = 400

func (p *onPath) keep(to *[][]byte, b []byte) {
	if len(*to) == keptPackets {
		*to = slices.Delete(*to, 0, 1)
	}
	*to = append(*to, slices.Clone(b))
}

// some is a packet of before, the last ones more often.
func (p *onPath) some(of [][]byte) []byte {
	if len(of) == 0 {
		return nil
	}
	back := p.rng.IntN(min(len(of), []int{1, 4, keptPackets}[p.rng.IntN(3)]))
	return slices.Clone(of[len(of)-1-back])
}

func (p *onPath) spoil(b []byte) []byte {
	if b == nil {
		return nil
	}
	other := p.some([][][]byte{p.toThere, p.toSender}[p.rng.IntN(2)])
	switch p.rng.IntN(8) {
	case 0:
		if other != nil {
			return append(b[:BaseLenAuth:BaseLenAuth], other[BaseLenAuth:]...)
		}
	case 1:
		return b[:BaseLenAuth]
	case 2:
		b[p.rng.IntN(len(b))] ^= 1 << p.rng.IntN(8)
	case 3:
		if len(other) == len(b) && len(b) > BaseLenAuth { // the clock's TLV alone, under the HMAC that stood behind the other
			return slices.Concat(b[:BaseLenAuth], other[BaseLenAuth:BaseLenAuth+tlvHeader+clockLen], b[BaseLenAuth+tlvHeader+clockLen:])
		}
	}
	return b
}

// count adds what the reflector refused so far.
func (p *onPath) count() {
	c := p.r.Counters()
	p.refused["forged"] += c.Forged
	p.refused["integrity"] += c.Integrity
	p.refused["replayed"] += c.Replayed
	p.refused["looped"] += c.Looped
}

func (p *onPath) step() {
	p.now += p.rng.Int64N(20 * ms)
	s := p.senders[p.rng.IntN(2)]
	switch p.rng.IntN(8) {
	case 0, 1, 2:
		b, seq := s.Next(p.stamp(p.now), Single, nil)
		if p.rng.IntN(4) > 0 {
			s.Sent(seq, p.stamp(p.now))
		}
		p.keep(&p.toThere, b)
	case 3, 4, 5:
		p.request(p.spoil(p.some(p.toThere)))
	case 6:
		p.reply(s, p.spoil(p.some(p.toSender)))
	case 7:
		switch p.rng.IntN(20) {
		case 0: // it was restarted, in the same boot
			p.count()
			p.r = newReflector(p.t, ReflectorConfig{Key: p.r.cfg.Key, Stateful: true, ClockID: p.r.cfg.ClockID})
		case 1:
			p.now += 61 * second // sessions are forgotten
		case 2, 3:
			p.request(p.some(p.toSender))
		case 4, 5:
			p.reply(s, p.some(p.toThere))
		default:
			p.reply(s, p.some(p.toSender))
		}
	}
	got, _ := s.Expire(p.now, nil)
	p.check(got)
}

func (p *onPath) request(b []byte) {
	if b == nil {
		return
	}
	from := netip.AddrPortFrom(peerA.Addr(), peerA.Port()+uint16(p.rng.IntN(3)))
	out, err := p.r.Handle(b, from, p.stamp(p.now+p.ahead), 60, p.now+p.ahead, nil)
	if err != nil {
		return
	}
	require.Len(p.t, out, len(b))
	p.keep(&p.toSender, out)
	if p.rng.IntN(4) > 0 {
		p.r.Sent(from, p.r.Number(), p.stamp(p.now+p.ahead))
	}
	if p.rng.IntN(2) == 0 {
		p.now += p.rng.Int64N(ms)
		p.reply(p.senders[0], out)
		p.reply(p.senders[1], out)
	}
}

func (p *onPath) reply(s *Sender, b []byte) {
	if b == nil {
		return
	}
	got, _ := s.Received(b, p.stamp(p.now), nil)
	p.check(got)
}

// check: what an exchange says bounds the offset of both clocks from the two sides.
func (p *onPath) check(got []Exchange) {
	for _, x := range got {
		if x.Faulty {
			continue
		}
		if x.T2.OK() {
			require.Equal(p.t, p.r.cfg.ClockID, x.PeerClock)
			require.GreaterOrEqual(p.t, x.T2.Raw-x.T1.Raw, p.ahead, "it arrived before it was sent: %+v", x)
			p.delivered++
		}
		if x.T3.OK() {
			require.LessOrEqual(p.t, x.T3.Raw-x.T4.Raw, p.ahead, "it left after it had arrived: %+v", x)
			p.delivered++
		}
	}
}

// TestWhoIsOnThePathMakesNoBoundFalse: with a key it can keep packets from being of use,
// and no more.
func TestWhoIsOnThePathMakesNoBoundFalse(t *testing.T) {
	for seed := range uint64(40) {
		p := &onPath{wire: newWire(t, SenderConfig{Key: testKey(t), SSID: 1}, true), rng: rand.New(rand.NewPCG(seed, 5)), now: second, refused: map[string]int64{}}
		p.senders = [2]*Sender{p.s, newSender(t, SenderConfig{Key: p.s.cfg.Key, SSID: uint16(1 + seed%2), ClockID: p.s.cfg.ClockID})}
		for range 3000 {
			p.step()
		}
		assert.Greater(t, p.delivered, 50, "%d", seed)
		assert.LessOrEqual(t, p.r.sessions.Len(), DefaultPerPeer)
		assert.LessOrEqual(t, len(p.r.held), 1)
		p.count()
		for what, n := range p.refused {
			assert.Positive(t, n, what)
		}
	}
}

// TestSplicesAreMadeOfWholeTLVs: what the test above takes for a clock's TLV is one.
func TestSplicesAreMadeOfWholeTLVs(t *testing.T) {
	key := testKey(t)
	b, _ := newSender(t, SenderConfig{Key: key, ClockID: "host:a/boot/raw"}).Next(aStamp, Single, nil)
	assert.Equal(t, byte(TypeClock), b[BaseLenAuth+1])
	rest := b[BaseLenAuth+tlvHeader+clockLen:]
	assert.Len(t, rest, tlvHeader+macLen)
	assert.True(t, bytes.Equal([]byte{FlagUnrecognized, TypeHMAC, 0, macLen}, rest[:tlvHeader]))
}
