// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newSender(tb testing.TB, cfg SenderConfig) *Sender {
	tb.Helper()
	s, err := NewSender(cfg)
	require.NoError(tb, err)
	return s
}

// wire is a sender and a reflector whose clock is ahead of the sender's.
type wire struct {
	t     testing.TB
	s     *Sender
	r     *Reflector
	ahead int64
	unix  int64
}

func newWire(tb testing.TB, cfg SenderConfig, stateful bool) *wire {
	tb.Helper()
	cfg.ClockID = "host:a/boot/raw"
	return &wire{
		t: tb, s: newSender(tb, cfg), ahead: 7_000_000_000_000, unix: 1_700_000_000 * second,
		r: newReflector(tb, ReflectorConfig{Key: cfg.Key, Stateful: stateful, ClockID: "host:b/boot/raw"}),
	}
}

func (w *wire) stamp(raw int64) Stamp {
	return Stamp{Raw: raw, Unix: raw + w.unix, Kind: KindKernel, Width: 60}
}

// send makes a request and its stamp; the moment is the sender's.
func (w *wire) send(now int64, part Part) []byte {
	b, seq := w.s.Next(Stamp{Raw: now, Unix: now + w.unix, Kind: KindUser, Width: 5000}, part, nil)
	w.s.Sent(seq, w.stamp(now+100))
	return b
}

// reflect answers a request, and tells when the reply left.
func (w *wire) reflect(req []byte, now int64) []byte {
	w.t.Helper()
	b, err := w.r.Handle(req, peerA, w.stamp(now+w.ahead), 60, now+w.ahead+1000, nil)
	require.NoError(w.t, err)
	w.r.Sent(peerA, w.r.Number(), w.stamp(now+w.ahead+2000))
	return b
}

func (w *wire) receive(reply []byte, now int64) ([]Exchange, error) {
	return w.s.Received(reply, w.stamp(now), nil)
}

// TestExchange: an exchange is complete when the next reply has brought the stamp
// of its own.
func TestExchange(t *testing.T) {
	for _, key := range []*Key{nil, testKey(t)} {
		w := newWire(t, SenderConfig{Key: key, SSID: 9, Path: 3}, true)
		got, err := w.receive(w.reflect(w.send(1*second, First), 1*second+ms), 1*second+2*ms)
		require.NoError(t, err)
		require.Empty(t, got)
		got, err = w.receive(w.reflect(w.send(2*second, Second), 2*second+ms), 2*second+2*ms)
		require.NoError(t, err)
		at := int64(second)
		first := Exchange{
			Seq: 0, Pair: 1, Part: First, Path: 3, Stateful: true, PeerClock: "host:b/boot/raw", TTL: 60,
			T1: w.stamp(at + 100), T2: w.stamp(at + ms + w.ahead), T3: w.stamp(at + ms + w.ahead + 2000), T4: w.stamp(at + 2*ms),
		}
		first.T3.Unix -= 1000 // it is what the packet says: our own reflector is not asked for another
		assert.Equal(t, []Exchange{first}, got)

		// The second's stamp never comes: delivered when patience is over.
		got, loss := w.s.Expire(6*second-1, nil)
		assert.Empty(t, got)
		assert.Zero(t, loss)
		got, _ = w.s.Expire(6*second, nil)
		require.Len(t, got, 1)
		assert.Equal(t, Second, got[0].Part)
		assert.Equal(t, uint32(1), got[0].Pair)
		assert.False(t, got[0].T3.OK())
		assert.Equal(t, w.unix+2*second+ms+w.ahead+1000, got[0].T3.Unix, "what the packet says")
		assert.Equal(t, SenderCounters{Requests: 2, Replies: 2, Partial: 1}, w.s.Counters())
	}
}

// TestStampOfTheRequestComesLast: an exchange waits for it too, and only the first
// counts.
func TestStampOfTheRequestComesLast(t *testing.T) {
	w := newWire(t, SenderConfig{}, true)
	for i := range 2 {
		at := int64(i+1) * second
		req, _ := w.s.Next(w.stamp(at), Single, nil)
		got, err := w.receive(w.reflect(req, at), at)
		require.NoError(t, err)
		require.Empty(t, got)
	}
	w.s.Sent(0, Stamp{Raw: 1})
	w.s.Sent(0xffffffff, w.stamp(5))
	w.s.Sent(2, w.stamp(5))
	w.s.Sent(0, w.stamp(second+100))
	w.s.Sent(0, w.stamp(second+200))
	got, _ := w.s.Expire(2*second, nil)
	require.Len(t, got, 1)
	assert.Equal(t, w.stamp(second+100), got[0].T1)
	assert.Equal(t, second+w.ahead+2000, got[0].T3.Raw)
}

// TestReflectorBeginsAnew: one that was restarted counts from 0 again; stamps of
// its former replies are not taken for those of the new ones.
func TestReflectorBeginsAnew(t *testing.T) {
	w := newWire(t, SenderConfig{}, true)
	var got []Exchange
	for i := range 12 {
		at := int64(i+1) * 100 * ms
		if i == 6 {
			w.r = newReflector(t, ReflectorConfig{Stateful: true, ClockID: "host:b/boot/raw"})
		}
		reply := w.reflect(w.send(at, Single), at)
		if i == 2 {
			continue // lost, but the next ones tell when it left
		}
		x, err := w.receive(reply, at)
		require.NoError(t, err)
		got = append(got, x...)
	}
	got, _ = w.s.Expire(10*second, got)
	require.Len(t, got, 11)
	whole := 0
	for _, x := range got {
		if x.T3.OK() {
			whole++
			assert.Equal(t, int64(x.Seq+1)*100*ms+w.ahead+2000, x.T3.Raw, x.Seq)
		}
	}
	assert.Equal(t, 9, whole, "all but the last of both lives")
}

// TestReflectorsOfOthers: without our TLV there are Unix stamps, and RFC 8972's
// own follow-up.
func TestReflectorsOfOthers(t *testing.T) {
	s := newSender(t, SenderConfig{})
	unix := int64(1_700_000_000 * second)
	reply := func(q []byte, follow FollowUp) []byte {
		in, err := DecodeRequest(q, nil)
		require.NoError(t, err)
		out := Reply{
			Seq: in.Seq, SenderSeq: in.Seq, SenderTime: in.Time, Error: 1, // NTP
			Received: NTP(unix + 500), Time: NTP(unix + 600),
		}
		out.TLVs, err = TLVs(nil).Append(TypeFollowUp, make([]byte, 16))
		require.NoError(t, err)
		out.TLVs[0] = 0
		follow.put(out.TLVs[4:])
		out.TLVs, err = out.TLVs.Append(TypeClock, make([]byte, clockLen)) // not understood: U
		require.NoError(t, err)
		return out.Append(nil, nil)
	}
	for i := range 2 {
		q, _ := s.Next(Stamp{Raw: int64(i), Unix: unix, Kind: KindUser}, Single, nil)
		in, err := DecodeRequest(q, nil)
		require.NoError(t, err)
		asks := false
		for v := range in.TLVs.All() {
			asks = asks || v.Type == TypeFollowUp
		}
		assert.Equal(t, i == 1, asks, "once it is known that the reflector is another's")
		_, err = s.Received(reply(q, FollowUp{Seq: 0, Time: NTP(unix + 650)}), Stamp{Raw: 1000, Kind: KindKernel}, nil)
		require.NoError(t, err)
	}
	got, _ := s.Expire(100*second, nil)
	require.Len(t, got, 2)
	assert.Equal(t, Stamp{Unix: unix + 500, Width: 2}, got[0].T2, "2^-32 s, rounded up, and the resolution")
	assert.Equal(t, Stamp{Unix: unix + 650, Width: 2}, got[0].T3)
	assert.Equal(t, Stamp{Unix: unix + 600, Width: 2}, got[1].T3)
	assert.Empty(t, got[0].PeerClock)
}

func TestRepliesAreRefused(t *testing.T) {
	key := testKey(t)
	w := newWire(t, SenderConfig{Key: key, SSID: 9, Pending: 4}, true)
	good := w.reflect(w.send(second, Single), second)
	change := func(f func(*Reply)) []byte {
		r, err := DecodeReply(good, key)
		require.NoError(t, err)
		r.TLVs = nil
		f(&r)
		return r.Append(nil, key)
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"unsigned":         {append([]byte{1}, good[1:]...), ErrForged},
		"never sent":       {change(func(r *Reply) { r.SenderSeq = 1 }), ErrMismatch},
		"other time":       {change(func(r *Reply) { r.SenderTime++ }), ErrMismatch},
		"other session":    {change(func(r *Reply) { r.SSID = 8 }), ErrMismatch},
		"before the first": {change(func(r *Reply) { r.SenderSeq, r.SenderTime = 0xffffffff, 0 }), ErrDuplicate},
	} {
		_, err := w.receive(c.b, second)
		require.ErrorIs(t, err, c.want, name)
	}
	_, err := w.receive(good[:111], second)
	require.ErrorContains(t, err, "got 111 bytes; want at least 112")
	_, err = w.receive(make([]byte, 1473), second)
	require.ErrorContains(t, err, "got 1473 bytes; want at most 1472")
	_, err = w.receive(good, second)
	require.NoError(t, err, "none of them did harm")
	_, err = w.receive(good, second)
	require.ErrorIs(t, err, ErrDuplicate)

	late := w.reflect(w.send(2*second, Single), 2*second)
	_, loss := w.s.Expire(3*second, nil)
	assert.Zero(t, loss, "the direction is not known yet")
	_, err = w.receive(late, 3*second)
	require.ErrorIs(t, err, ErrLate)
	for range 4 {
		w.send(3*second, Single)
	}
	_, err = w.receive(late, 3*second)
	require.ErrorIs(t, err, ErrLate)
	assert.Equal(t, SenderCounters{
		Requests: 6, Replies: 1, Short: 1, Long: 1, Forged: 1, Mismatched: 3, Duplicate: 2, Late: 2, Partial: 1,
	}, w.s.Counters())
}

// TestUnsignedTLVsMoveNothing: a reply whose base is right, but not its TLVs,
// gives no stamp of the peer.
func TestUnsignedTLVsMoveNothing(t *testing.T) {
	w := newWire(t, SenderConfig{Key: testKey(t)}, true)
	b := w.reflect(w.send(second, Single), second)
	b[BaseLenAuth+tlvHeader+20]++ // the receive stamp
	_, err := w.receive(b, second)
	require.NoError(t, err)
	got, _ := w.s.Expire(100*second, nil)
	require.Len(t, got, 1)
	assert.False(t, got[0].T2.OK())
	assert.Equal(t, int64(1), w.s.Counters().Faulty)
}

// TestLossByDirection: a count of the reflector's that skips tells which way.
func TestLossByDirection(t *testing.T) {
	for name, c := range map[string]struct {
		stateful bool
		fate     string // of each request: . answered, > lost on the way there, < on the way back
		want     Loss
	}{
		"none":        {true, "....", Loss{}},
		"there":       {true, ".>>.", Loss{Forward: 2}},
		"back":        {true, ".<<.", Loss{Backward: 2}},
		"both":        {true, ".<>>.<.", Loss{Forward: 2, Backward: 2}},
		"stateless":   {false, ".<>.", Loss{Unknown: 2}},
		"before any":  {true, "<>.", Loss{Unknown: 2}},
		"nothing yet": {true, ".><", Loss{}},
	} {
		w := newWire(t, SenderConfig{}, c.stateful)
		for i, fate := range c.fate {
			at := int64(i+1) * 100 * ms
			req := w.send(at, Single)
			if fate == '>' {
				continue
			}
			reply := w.reflect(req, at)
			if fate == '.' {
				_, err := w.receive(reply, at)
				require.NoError(t, err)
			}
		}
		_, loss := w.s.Expire(3*second, nil)
		assert.Equal(t, c.want, loss, name)
	}
	w := newWire(t, SenderConfig{}, true)
	w.send(second, Single)
	_, loss := w.s.Expire(5*second, nil)
	assert.Zero(t, loss)
	_, loss = w.s.Expire(5*second+1, nil)
	assert.Equal(t, Loss{Unknown: 1}, loss, "nothing came after it")
	_, loss = w.s.Expire(9*second, nil)
	assert.Zero(t, loss, "told once")
}

// TestOverrun: more requests than are remembered push out the oldest, counted.
func TestOverrun(t *testing.T) {
	w := newWire(t, SenderConfig{Pending: 3}, true)
	var replies [][]byte
	for i := range 4 {
		replies = append(replies, w.reflect(w.send(int64(i)*ms, Single), int64(i)*ms))
	}
	var got []Exchange
	for _, r := range replies[:2] {
		x, err := w.receive(r, 5*ms)
		require.NoError(t, err)
		got = append(got, x...)
	}
	for i := range 4 {
		w.send(int64(10+i)*ms, Single)
	}
	got, loss := w.s.Expire(20*ms, got)
	require.Len(t, got, 2)
	assert.Equal(t, []uint32{0, 1}, []uint32{got[0].Seq, got[1].Seq})
	assert.Zero(t, loss)
	assert.Equal(t, int64(2), w.s.Counters().Overrun)
	_, err := w.receive(replies[3], 20*ms)
	require.ErrorIs(t, err, ErrLate)
}

// TestLossyNetwork: over a network that loses, delays, repeats and reorders, each
// exchange is told once and its stamps are the true ones; what is told and what is
// lost is what was sent.
func TestLossyNetwork(t *testing.T) {
	type flight struct {
		at    int64
		reply bool
		b     []byte
	}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := newWire(t, SenderConfig{Pending: 256, Timeout: 50 * time.Millisecond, Patience: 100 * time.Millisecond}, true)
		left := map[uint32]int64{}    // truth: when the reply of a request left
		arrived := map[uint32]int64{} // and when the request arrived
		back := map[uint32]int64{}
		var air []flight
		put := func(f flight) {
			for range 1 + rnd.IntN(10)/9 {
				if rnd.IntN(10) > 0 {
					f.at += 100_000 + rnd.Int64N(3*ms)
					air = append(air, f)
				}
			}
		}
		var got []Exchange
		var lost int64
		sent := 0
		for now := int64(0); now < 3*second; now += 100_000 {
			if now%ms == 0 && now < 2*second {
				put(flight{at: now, b: w.send(now, Single)})
				sent++
			}
			for i := 0; i < len(air); i++ {
				f := air[i]
				if f.at > now {
					continue
				}
				air = append(air[:i], air[i+1:]...)
				i--
				if f.reply {
					seq := uint32(0)
					if r, err := DecodeReply(f.b, nil); err == nil {
						seq = r.SenderSeq
					}
					if _, twice := back[seq]; !twice {
						back[seq] = now
					}
					got, _ = w.s.Received(f.b, w.stamp(now), got)
					continue
				}
				q, err := DecodeRequest(f.b, nil)
				require.NoError(t, err)
				if b, err := w.r.Handle(f.b, peerA, w.stamp(now+w.ahead), 60, now+w.ahead, nil); err == nil {
					arrived[q.Seq], left[q.Seq] = now, now+500
					w.r.Sent(peerA, w.r.Number(), w.stamp(now+w.ahead+500))
					put(flight{at: now, reply: true, b: b})
				}
			}
			var loss Loss
			got, loss = w.s.Expire(now, got)
			lost += loss.Forward + loss.Backward + loss.Unknown
		}
		assert.Equal(t, sent, len(got)+int(lost))
		complete := 0
		seen := map[uint32]bool{}
		for _, x := range got {
			require.False(t, seen[x.Seq], "told twice")
			seen[x.Seq] = true
			require.Equal(t, w.stamp(int64(x.Seq)*ms+100), x.T1)
			require.Equal(t, w.stamp(arrived[x.Seq]+w.ahead), x.T2)
			require.Equal(t, w.stamp(back[x.Seq]), x.T4)
			if x.T3.OK() {
				complete++
				require.Equal(t, left[x.Seq]+w.ahead, x.T3.Raw)
			}
		}
		c := w.s.Counters()
		assert.Equal(t, int64(len(got)-complete), c.Partial)
		// A stamp travels in two replies, each lost one time in ten.
		assert.Greater(t, complete, len(got)*95/100)
		assert.Zero(t, c.Mismatched+c.Faulty)
		assert.Positive(t, c.Duplicate)
		assert.Positive(t, w.r.Counters().Replayed)
	}
}

// TestNumbersComeRound: 2^32 requests later, all goes on.
func TestNumbersComeRound(t *testing.T) {
	w := newWire(t, SenderConfig{}, true)
	w.s.next, w.s.settled, w.s.held = 0xfffffffe, 0xfffffffe, 0xfffffffe
	var got []Exchange
	for i := range 5 {
		at := int64(i+1) * ms
		x, err := w.receive(w.reflect(w.send(at, Single), at), at)
		require.NoError(t, err)
		got = append(got, x...)
	}
	require.Len(t, got, 4)
	assert.Equal(t, uint32(1), got[3].Seq)
	_, loss := w.s.Expire(second, nil)
	assert.Zero(t, loss)
}

func TestSenderConfigIsChecked(t *testing.T) {
	for _, cfg := range []SenderConfig{
		{Pending: -1},
		{Pending: maxPending + 1},
		{Timeout: -1},
		{Timeout: 2, Patience: 1},
		{Patience: 2 * time.Hour},
		{ClockID: string(make([]byte, 129))},
	} {
		_, err := NewSender(cfg)
		require.ErrorContains(t, err, "make sender: got ")
	}
}
