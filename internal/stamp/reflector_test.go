// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ms = 1_000_000

var (
	peerA = netip.MustParseAddrPort("192.0.2.1:40000")
	// aStamp is of any moment.
	aStamp = Stamp{Raw: second, Unix: 1_700_000_001 * second, Kind: KindKernel}

	peerB = netip.MustParseAddrPort("192.0.2.2:40000")
)

func newReflector(tb testing.TB, cfg ReflectorConfig) *Reflector {
	tb.Helper()
	r, err := NewReflector(cfg)
	require.NoError(tb, err)
	return r
}

// ask hands a request in and returns the reply.
func ask(tb testing.TB, r *Reflector, q *Request, from netip.AddrPort, now int64) (Reply, error) {
	tb.Helper()
	b := q.Append(nil, r.cfg.Key)
	got, err := r.Handle(b, from, Stamp{Raw: now - 10, Unix: 1_700_000_000*second + now - 10, Kind: KindKernel, Width: 70}, 63, now, nil)
	if err != nil {
		require.Empty(tb, got)
		return Reply{}, err
	}
	require.Len(tb, got, len(b))
	reply, err := DecodeReply(got, r.cfg.Key)
	require.NoError(tb, err)
	return reply, nil
}

func TestReplyRepeatsTheRequest(t *testing.T) {
	for _, key := range []*Key{nil, testKey(t)} {
		for _, stateful := range []bool{false, true} {
			r := newReflector(t, ReflectorConfig{Key: key, Stateful: stateful})
			q := aRequest
			got, err := ask(t, r, &q, peerA, second)
			require.NoError(t, err)
			want := Reply{
				Seq: q.Seq, SSID: 0xBEEF, SenderSeq: q.Seq, SenderTime: q.Time, SenderError: q.Error, SenderTTL: 63,
				Received: PTP(1_700_000_001*second - 10), Time: PTP(1_700_000_001 * second), Error: Estimate(71),
			}
			if stateful {
				want.Seq = 0
			}
			got.TLVs = nil
			assert.Equal(t, want, got)
			q.Seq++
			got, err = ask(t, r, &q, peerA, second+ms)
			require.NoError(t, err)
			if stateful {
				assert.Equal(t, uint32(1), got.Seq)
			} else {
				assert.Equal(t, q.Seq, got.Seq)
			}
			assert.Equal(t, ReflectorCounters{Replies: 2}, r.Counters())
		}
	}
}

func TestSequenceWindow(t *testing.T) {
	r := newReflector(t, ReflectorConfig{Stateful: true, Rate: 1000})
	at := int64(0)
	send := func(seq uint32) error {
		at += ms
		_, err := ask(t, r, &Request{Seq: seq, SSID: 1}, peerA, at)
		return err
	}
	require.NoError(t, send(100))
	require.NoError(t, send(103))
	require.NoError(t, send(101), "late, but for the first time")
	require.ErrorIs(t, send(101), ErrReplayed)
	require.ErrorIs(t, send(103), ErrReplayed)
	require.NoError(t, send(40), "63 below the highest")
	require.ErrorIs(t, send(39), ErrReplayed, "64 below")
	// 1,000 a second, and 8 ms since 103 came.
	require.ErrorIs(t, send(103+1010), ErrFuture)
	require.NoError(t, send(103+1000))
	require.NoError(t, send(103+1000+64))
	require.ErrorIs(t, send(103+1000), ErrReplayed)
	c := r.Counters()
	assert.Equal(t, ReflectorCounters{Replies: 6, Replayed: 4, Future: 1}, c)
	_, err := ask(t, r, &Request{Seq: 101, SSID: 2}, peerA, at)
	require.NoError(t, err, "another session")
	_, err = ask(t, r, &Request{Seq: 101, SSID: 1}, peerB, at)
	require.NoError(t, err, "another peer")
	_, err = ask(t, r, &Request{Seq: 1, SSID: 1}, peerA, at+60*second)
	require.NoError(t, err, "forgotten after a minute")
}

func TestSequenceNumbersComeRound(t *testing.T) {
	w := window{top: 0xffffffff, seen: 1}
	assert.Equal(t, seqNew, w.judge(1, 10))
	w.add(1)
	assert.Equal(t, seqReplayed, w.judge(0xffffffff, 10))
	assert.Equal(t, seqNew, w.judge(0, 10))
	w.add(0)
	assert.Equal(t, seqReplayed, w.judge(0, 10))
}

func TestRate(t *testing.T) {
	r := newReflector(t, ReflectorConfig{Rate: 100})
	// 100 ms add up: 10 packets. Then one every 10 ms.
	passed := 0
	for range 50 {
		if _, err := ask(t, r, &Request{}, peerA, second); err == nil {
			passed++
		} else {
			require.ErrorIs(t, err, ErrRate)
		}
	}
	assert.Equal(t, 10, passed)
	_, err := ask(t, r, &Request{}, peerB, second)
	require.NoError(t, err, "a peer has its own credit")
	_, err = ask(t, r, &Request{}, peerA, second+10*ms)
	require.NoError(t, err)
	_, err = ask(t, r, &Request{}, peerA, second+19*ms)
	require.ErrorIs(t, err, ErrRate)
	assert.Equal(t, int64(41), r.Counters().Limited)

	slow := newReflector(t, ReflectorConfig{Rate: 1})
	for range 2 {
		_, err = ask(t, slow, &Request{}, peerA, second)
		require.NoError(t, err, "both of a coded pair")
	}
	_, err = ask(t, slow, &Request{}, peerA, second)
	require.ErrorIs(t, err, ErrRate)
}

// TestForgedRequestsCostNothing: what is not signed neither uses credit nor a
// place nor a sequence number.
func TestForgedRequestsCostNothing(t *testing.T) {
	key := testKey(t)
	r := newReflector(t, ReflectorConfig{Key: key, Rate: 10, MaxSessions: 1})
	for range 100 {
		_, err := r.Handle(make([]byte, 112), peerB, aStamp, 1, second, nil)
		require.ErrorIs(t, err, ErrForged)
	}
	_, err := ask(t, r, &Request{Seq: 5}, peerA, second)
	require.NoError(t, err)
	assert.Equal(t, ReflectorCounters{Replies: 1, Forged: 100}, r.Counters())
}

// TestSignedRequestsWithoutAKey: whoever forgot the key is to be told so.
func TestSignedRequestsWithoutAKey(t *testing.T) {
	r := newReflector(t, ReflectorConfig{Stateful: true})
	q := &Request{Seq: 5, Time: PTP(7 * second), Error: Estimate(1), SSID: 3}
	_, err := r.Handle(q.Append(nil, testKey(t)), peerA, aStamp, 1, second, nil)
	require.ErrorIs(t, err, ErrSigned)
	_, err = r.Handle(append(q.Append(nil, nil), make([]byte, BaseLenAuth)...), peerA, aStamp, 1, second, nil)
	require.NoError(t, err, "as long, and not signed")
	_, err = r.Handle(make([]byte, BaseLenAuth), peerA, aStamp, 1, second, nil)
	require.NoError(t, err, "zeros are a request")
	c := r.Counters()
	assert.Equal(t, [3]int64{2, 1, 0}, [3]int64{c.Replies, c.Signed, c.Looped})
}

func TestReflectorsDoNotAnswerEachOther(t *testing.T) {
	for _, key := range []*Key{nil, testKey(t)} {
		r := newReflector(t, ReflectorConfig{Key: key})
		b := (&Request{Seq: 1}).Append(nil, key)
		reply, err := r.Handle(b, peerA, aStamp, 64, second, nil)
		require.NoError(t, err)
		_, err = r.Handle(reply, peerA, aStamp, 64, second, nil)
		require.ErrorIs(t, err, ErrLoop)
		assert.Equal(t, int64(1), r.Counters().Looped)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	r := newReflector(t, ReflectorConfig{Stateful: true, MaxSessions: 2})
	session := func(ssid uint16, at int64) error {
		_, err := ask(t, r, &Request{SSID: ssid, Seq: uint32(at / ms)}, peerA, at)
		return err
	}
	require.NoError(t, session(1, 1*second))
	require.NoError(t, session(2, 2*second))
	require.ErrorIs(t, session(3, 3*second), ErrFull)
	require.NoError(t, session(1, 50*second))
	require.NoError(t, session(3, 62*second), "2 was silent for 60 s")
	require.ErrorIs(t, session(2, 62*second), ErrFull, "1 and 3 are in use")
	assert.Equal(t, int64(2), r.Counters().Full)
	assert.Equal(t, 2, r.sessions.Len())

	r = newReflector(t, ReflectorConfig{MaxSessions: 1})
	_, err := ask(t, r, &Request{}, peerA, second)
	require.NoError(t, err)
	_, err = ask(t, r, &Request{}, peerB, second)
	require.ErrorIs(t, err, ErrFull, "peers are bounded too")
}

// tlv is one by hand, without regard to its length's truth.
func tlv(flags, kind uint8, length int, value ...byte) []byte {
	return append([]byte{flags, kind, byte(length >> 8), byte(length)}, value...)
}

func TestFlagsOfTLVs(t *testing.T) {
	key := testKey(t)
	cat := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	for name, c := range map[string]struct {
		key         *Key
		tlvs, reply []byte
	}{
		"unknown":               {nil, tlv(0x80, 200, 2, 1, 2), tlv(0x80, 200, 2, 1, 2)},
		"padding":               {nil, tlv(0x80, 1, 2, 1, 2), tlv(0, 1, 2, 1, 2)},
		"sender's flags":        {nil, tlv(0xff, 1, 0), tlv(0, 1, 0)},
		"another's private TLV": {nil, tlv(0x80, 252, 4, 0, 0, 0, 9), tlv(0x80, 252, 4, 0, 0, 0, 9)},
		"beyond the packet": {
			nil, cat(tlv(0x80, 1, 0), tlv(0x80, 200, 9, 1), tlv(0x80, 1, 0)),
			cat(tlv(0, 1, 0), tlv(0x40, 200, 9, 1), tlv(0x80, 1, 0)),
		},
		"wrong length":        {nil, cat(tlv(0x80, 7, 1, 5), tlv(0x80, 1, 0)), cat(tlv(0x40, 7, 1, 5), tlv(0x80, 1, 0))},
		"no TLV":              {nil, []byte{1, 2, 3}, []byte{1, 2, 3}},
		"digest without key":  {nil, cat(tlv(0x80, 1, 0), tlv(0x80, 8, 16, make([]byte, 16)...)), cat(tlv(0x20, 1, 0), tlv(0x20, 8, 16, make([]byte, 16)...))},
		"key without digest":  {key, cat(tlv(0x80, 200, 0), tlv(0x80, 1, 0)), cat(tlv(0x20, 200, 0), tlv(0x20, 1, 0))},
		"only padding":        {key, tlv(0x80, 1, 1, 7), tlv(0, 1, 1, 7)},
		"padding twice":       {key, cat(tlv(0x80, 1, 0), tlv(0x80, 1, 0)), cat(tlv(0x20, 1, 0), tlv(0x20, 1, 0))},
		"digest not the last": {key, cat(tlv(0x80, 8, 16, make([]byte, 16)...), tlv(0x80, 200, 0)), cat(tlv(0x20, 8, 16, make([]byte, 16)...), tlv(0x20, 200, 0))},
		"wrong digest":        {key, cat(tlv(0x80, 200, 0), tlv(0x80, 8, 16, make([]byte, 16)...)), cat(tlv(0x20, 200, 0), tlv(0x20, 8, 16, make([]byte, 16)...))},
		"stateless follow-up": {nil, tlv(0x80, 7, 16, []byte("0123456789abcdef")...), tlv(0, 7, 16, make([]byte, 16)...)},
	} {
		r := newReflector(t, ReflectorConfig{Key: c.key})
		b := append((&Request{Seq: 9}).Append(nil, c.key), c.tlvs...)
		got, err := r.Handle(b, peerA, aStamp, 64, second, nil)
		require.NoError(t, err, name)
		require.Len(t, got, len(b), name)
		assert.Equal(t, c.reply, got[layoutOf(c.key).size:], name)
	}
}

// TestClockOfReply: a reply bears the stamp of its request, and twice the stamps
// of the replies before it, also in RFC 8972's own TLV.
func TestClockOfReply(t *testing.T) {
	for _, key := range []*Key{nil, testKey(t)} {
		r := newReflector(t, ReflectorConfig{Key: key, Stateful: true, ClockID: "host:b/boot/raw"})
		var told [][]Follow
		var rfc []FollowUp
		var instance uint32
		for i := range 6 {
			now := int64(i+1) * second
			q := Request{Seq: uint32(i)}
			var err error
			q.TLVs, err = q.TLVs.AppendClock(&Clock{ID: "host:a/boot/raw", Flags: ClockFirst, Path: 2, Pair: 7})
			require.NoError(t, err)
			q.TLVs = q.TLVs.AppendFollowUp()
			reply, err := ask(t, r, &q, peerA, now)
			require.NoError(t, err)
			require.Zero(t, reply.Fault)
			v, ok := reply.TLVs.Find(TypeClock)
			require.True(t, ok)
			c, err := DecodeClock(v.Value)
			require.NoError(t, err)
			told = append(told, append([]Follow(nil), c.Follows[:c.Count]...))
			if instance == 0 {
				instance = c.Instance
			}
			assert.Equal(t, instance, c.Instance, "of the session, throughout")
			c.Follows, c.Count, c.Instance = [4]Follow{}, 0, 0
			assert.Equal(t, Clock{
				Flags: ClockFirst | ClockStateful, Path: 2, Pair: 7, ID: "host:b/boot/raw",
				Received: now - 10, ReceivedKind: KindKernel, ReceivedWidth: 70,
			}, c)
			v, ok = reply.TLVs.Find(TypeFollowUp)
			require.True(t, ok)
			f, err := DecodeFollowUp(v.Value)
			require.NoError(t, err)
			rfc = append(rfc, f)
			if i < 3 {
				r.Sent(peerA, r.Number(), Stamp{Raw: now + 5, Unix: now + 6, Kind: KindHardware, Width: 8})
			}
		}
		f := func(i int64) Follow {
			return Follow{Seq: uint32(i), Sent: (i+1)*second + 5, Kind: KindHardware, Width: 8}
		}
		assert.Equal(t, [][]Follow{nil, {f(0)}, {f(1), f(0)}, {f(2), f(1)}, {f(2)}, nil}, told)
		assert.Equal(t, FollowUp{}, rfc[0])
		assert.Equal(t, FollowUp{Seq: 1, Time: PTP(2*second + 6), Mode: 1}, rfc[2])
		r.Sent(peerB, r.Number(), Stamp{Kind: KindKernel})
		assert.Equal(t, int64(1), r.Counters().Stray)
	}
}

// TestStampsWait: more stamps than a reply has room for come with later ones,
// oldest first, and beyond the room that there is are counted.
func TestMarkOfARequest(t *testing.T) {
	for _, key := range []*Key{nil, testKey(t)} {
		r := newReflector(t, ReflectorConfig{Key: key, Stateful: true, Mark: 1 << 63})
		next := func(mark uint64, spoil bool) bool {
			s, err := NewSender(SenderConfig{Key: key, SSID: uint16(1 + r.sessions.Len()), ClockID: "host:a/1/raw", Mark: mark})
			require.NoError(t, err)
			packet, _ := s.Next(aStamp, First, nil)
			if spoil {
				packet[len(packet)-1] ^= 1
			}
			_, err = r.Handle(packet, peerA, aStamp, 63, aStamp.Raw, nil)
			require.NoError(t, err)
			return r.Marked()
		}
		assert.True(t, next(1<<63, false))
		assert.False(t, next(0, false))
		assert.False(t, next(1<<63+1, false))
		assert.Equal(t, key == nil, next(1<<63, true), "what is signed counts if it is authentic")
		_, err := r.Handle([]byte{1}, peerA, aStamp, 63, aStamp.Raw, nil)
		require.Error(t, err)
		assert.False(t, r.Marked(), "of the last one")

		r.cfg.Mark = 0
		assert.False(t, next(0, false), "none is none")
	}
}

func TestStampsWait(t *testing.T) {
	var f follows
	for i := range keepFollows + 3 {
		assert.Equal(t, i < keepFollows, f.add(uint32(i), Stamp{Kind: KindKernel}))
	}
	var firsts []uint32
	for range keepFollows/MaxFollows*tellTimes + 1 {
		var c Clock
		f.fill(&c)
		for _, v := range c.Follows[:c.Count] {
			firsts = append(firsts, v.Seq)
		}
	}
	require.Len(t, firsts, keepFollows*tellTimes)
	for i := range keepFollows {
		assert.Equal(t, uint32(i+3), firsts[i])
		assert.Equal(t, uint32(i+3), firsts[keepFollows+i])
	}
	assert.Zero(t, f.n)
}

func TestReflectorConfigIsChecked(t *testing.T) {
	for _, cfg := range []ReflectorConfig{{MaxSessions: -1}, {MaxSessions: maxSessions + 1}, {PerPeer: -1}, {Rate: -1}, {Rate: maxRate + 1}, {ClockID: string(make([]byte, 129))}} {
		_, err := NewReflector(cfg)
		require.ErrorContains(t, err, "make reflector: got ")
	}
}
