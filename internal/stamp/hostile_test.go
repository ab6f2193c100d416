// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTLVsAreBoundToTheirPacket: TLVs that were signed for another packet with the
// same number, of either direction, say nothing.
func TestTLVsAreBoundToTheirPacket(t *testing.T) {
	key := testKey(t)
	w := newWire(t, SenderConfig{Key: key, SSID: 7}, true)
	other := newSender(t, SenderConfig{Key: key, SSID: 8, ClockID: "host:a/boot/raw"})
	// Long ago, the same reflector answered another session, from 0 as well.
	q, _ := other.Next(w.stamp(5*second), Single, nil)
	old, err := w.r.Handle(q, peerB, w.stamp(5*second+w.ahead), 60, 5*second+w.ahead, nil)
	require.NoError(t, err)
	request := w.send(100*second, Single)
	reply := w.reflect(request, 100*second)
	for name, tlvs := range map[string][]byte{"of a reply": old, "of a request": q, "of its own request": request} {
		s := *w.s
		s.ring = append([]slot(nil), w.s.ring...)
		_, err = s.Received(append(append([]byte(nil), reply[:BaseLenAuth]...), tlvs[BaseLenAuth:]...), w.stamp(100*second+ms), nil)
		require.NoError(t, err, name)
		got, _ := s.Expire(200*second, nil)
		require.Len(t, got, 1, name)
		assert.Empty(t, got[0].PeerClock, name)
		assert.False(t, got[0].T2.OK(), name)
		assert.Equal(t, name == "of a reply", got[0].Faulty, "a request's say that they were not understood")
	}
	_, err = w.receive(reply, 100*second+ms)
	require.NoError(t, err)
	got, _ := w.s.Expire(200*second, nil)
	assert.Equal(t, "host:b/boot/raw", got[0].PeerClock, "its own")

	// And a reflector does not answer them with stamps.
	third := newSender(t, SenderConfig{Key: key, SSID: 9, ClockID: "host:a/boot/raw"})
	next, _ := third.Next(w.stamp(101*second), Single, nil)
	now := 101*second + w.ahead
	b, err := w.r.Handle(append(next[:BaseLenAuth:BaseLenAuth], q[BaseLenAuth:]...), peerA, w.stamp(now), 60, now, nil)
	require.NoError(t, err)
	assert.Equal(t, byte(FlagIntegrity), b[BaseLenAuth])
	assert.Equal(t, int64(1), w.r.Counters().Integrity)
}

// TestTLVsThatAreTakenAway: who signs and had our TLV does not become a reflector
// of others because somebody cut it off.
func TestTLVsThatAreTakenAway(t *testing.T) {
	for _, key := range []*Key{nil, testKey(t)} {
		w := newWire(t, SenderConfig{Key: key}, true)
		for i := range 2 {
			at := int64(i+1) * second
			b := w.reflect(w.send(at, Single), at)
			if i == 1 {
				b = b[:layoutOf(key).size]
			}
			_, err := w.receive(b, at+ms)
			require.NoError(t, err)
		}
		got, _ := w.s.Expire(100*second, nil)
		require.Len(t, got, 2)
		assert.False(t, got[0].Faulty)
		assert.Equal(t, key != nil, got[1].Faulty)
		assert.Empty(t, got[1].PeerClock)
	}
}

// TestFollowUpsOfAnotherInstance: a reflector that was restarted in the same boot has
// the same clock and counts from 0 again; what it tells of its reply 0 is not of
// the reply 0 of before.
func TestFollowUpsOfAnotherInstance(t *testing.T) {
	w := newWire(t, SenderConfig{}, true)
	before := w.send(second, Single)
	b, err := w.r.Handle(before, peerA, w.stamp(second+w.ahead), 60, second+w.ahead, nil)
	require.NoError(t, err)
	_, err = w.receive(b, second+ms) // when this reply left is never told
	require.NoError(t, err)
	w.r = newReflector(t, ReflectorConfig{Stateful: true, ClockID: "host:b/boot/raw"})
	w.reflect(w.send(2*second, Single), 2*second) // its reply 0, which is lost
	got, err := w.receive(w.reflect(w.send(2*second+100*ms, Single), 2*second+100*ms), 2*second+101*ms)
	require.NoError(t, err)
	assert.Empty(t, got, "nothing is known of the first exchange's reply")
	got, _ = w.s.Expire(100*second, nil)
	require.Len(t, got, 2)
	for _, x := range got {
		assert.False(t, x.T3.OK(), "request %d", x.Seq)
	}
}

// TestReplaysCostNoCredit: what somebody recorded and sends again uses up neither
// the credit nor the sessions of who signed it.
func TestReplaysCostNoCredit(t *testing.T) {
	w := newWire(t, SenderConfig{Key: testKey(t)}, true)
	recorded := w.send(second, Single)
	now := int64(second)
	ask := func(b []byte, from netip.AddrPort) error {
		_, err := w.r.Handle(b, from, w.stamp(now), 60, now, nil)
		return err
	}
	require.NoError(t, ask(recorded, peerA))
	for i := range 10_000 {
		now += ms / 10
		require.ErrorIs(t, ask(recorded, peerA), ErrReplayed)
		if i%1000 == 999 {
			require.NoError(t, ask(w.send(now, Single), peerA))
		}
	}
	assert.Zero(t, w.r.Counters().Limited)
}

func TestStrangersAreNotAnswered(t *testing.T) {
	r := newReflector(t, ReflectorConfig{Peer: func(a netip.Addr) bool { return a == peerA.Addr() }})
	_, err := ask(t, r, &Request{}, peerB, second)
	require.ErrorIs(t, err, ErrStranger)
	_, err = ask(t, r, &Request{}, peerA, second)
	require.NoError(t, err)
	assert.Equal(t, ReflectorCounters{Replies: 1, Stranger: 1}, r.Counters())
	assert.False(t, r.peers.Has(peerB.Addr()), "nothing is kept of it")
}

// TestRequestsWithoutAStamp: a reply would say that they arrived in 1970.
func TestRequestsWithoutAStamp(t *testing.T) {
	r := newReflector(t, ReflectorConfig{})
	_, err := r.Handle((&Request{}).Append(nil, nil), peerA, Stamp{}, 64, second, nil)
	require.ErrorIs(t, err, ErrUnstamped)
	assert.Equal(t, ReflectorCounters{Unstamped: 1}, r.Counters())
}

// TestErrorOfTheTimeOfAReply: it is carried over from the arrival, and the later it is,
// the less is known of it.
func TestErrorOfTheTimeOfAReply(t *testing.T) {
	r := newReflector(t, ReflectorConfig{})
	b, err := r.Handle((&Request{}).Append(nil, nil), peerA, aStamp, 64, aStamp.Raw+10*ms, nil)
	require.NoError(t, err)
	reply, err := DecodeReply(b, nil)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, reply.Error.Seconds(), 10e-6, "1,000 ppm of 10 ms")
}

// TestTimesOfOthersHaveAWidth: times of day are as exact as the reply says, and not
// more.
func TestTimesOfOthersHaveAWidth(t *testing.T) {
	unix := int64(1_700_000_000 * second)
	exchange := func(e ErrorEstimate) (Exchange, error) {
		s := newSender(t, SenderConfig{})
		q, _ := s.Next(Stamp{Raw: 1, Unix: unix, Kind: KindUser}, Single, nil)
		in, err := DecodeRequest(q, nil)
		require.NoError(t, err)
		out := Reply{Seq: in.Seq, SenderSeq: in.Seq, SenderTime: in.Time, Error: e, Received: PTP(unix), Time: PTP(unix)}
		if _, err := s.Received(out.Append(nil, nil), Stamp{Raw: 1000, Kind: KindKernel}, nil); err != nil {
			assert.Equal(t, int64(1), s.Counters().Corrupt)
			return Exchange{}, err
		}
		got, _ := s.Expire(100*second, nil)
		require.Len(t, got, 1)
		return got[0], nil
	}
	x, err := exchange(Estimate(ms))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, x.T2.Width, uint32(ms))
	assert.LessOrEqual(t, x.T2.Width, uint32(ms+ms/100))
	assert.Equal(t, x.T2.Width, x.T3.Width)
	x, err = exchange(1<<14 | 1) // 2^-32 s, of a packet that tells ns
	require.NoError(t, err)
	assert.Equal(t, uint32(2), x.T2.Width)
	x, err = exchange(1<<14 | 63<<8 | 255)
	require.NoError(t, err)
	assert.Equal(t, Stamp{}, x.T2, "it says itself that it knows nothing")
	_, err = exchange(1 << 14)
	require.ErrorIs(t, err, ErrEstimate)
}
