// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seeds are packets of both kinds, with TLVs that are right and wrong.
func seeds(f *testing.F) (key *Key) {
	f.Helper()
	key = testKey(f)
	tlvs, err := TLVs(nil).AppendClock(&Clock{ID: "host:a/b/raw", Count: 1, Follows: [4]Follow{{Seq: 1, Kind: 2}}})
	require.NoError(f, err)
	tlvs = tlvs.AppendFollowUp()
	q, p := aRequest, aReply
	q.TLVs, p.TLVs = tlvs, tlvs
	for _, k := range []*Key{nil, key} {
		for _, b := range [][]byte{aRequest.Append(nil, k), aReply.Append(nil, k), q.Append(nil, k), p.Append(nil, k)} {
			f.Add(b)
			f.Add(append(b, 0x80, 200, 0, 9, 1))
			f.Add(append(b, 0x80, 7, 0, 1, 1, 0x80, 1, 0, 0))
		}
	}
	f.Add([]byte{})
	return key
}

// FuzzDecodeRequest: what was read is written again as it was, but for bytes that
// must be zero, and TLVs stay within the packet.
func FuzzDecodeRequest(f *testing.F) {
	key := seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := DecodeRequest(b, key); err != nil {
			require.LessOrEqual(t, len(b), 1<<20)
		}
		r, err := DecodeRequest(b, nil)
		if err != nil {
			assert.True(t, len(b) < BaseLen || len(b) > MaxLen)
			return
		}
		again := r.Append(nil, nil)
		assert.Equal(t, b[:16], again[:16])
		assert.True(t, bytes.HasPrefix(b[BaseLen:], again[BaseLen:]))
		size := 0
		for v := range r.TLVs.All() {
			size += tlvHeader + len(v.Value)
			if v.Type == TypeClock {
				if c, err := DecodeClock(v.Value); err == nil {
					assert.True(t, len(c.ID) <= MaxID && c.Count <= MaxFollows)
				}
			}
		}
		assert.LessOrEqual(t, size, len(b)-BaseLen)
	})
}

// FuzzDecodeReply: as FuzzDecodeRequest, for replies.
func FuzzDecodeReply(f *testing.F) {
	key := seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = DecodeReply(b, key)
		r, err := DecodeReply(b, nil)
		if err != nil {
			assert.True(t, len(b) < BaseLen || len(b) > MaxLen)
			return
		}
		again := r.Append(nil, nil)
		assert.Equal(t, b[:38], again[:38])
		assert.Equal(t, b[40], again[40])
		assert.True(t, bytes.HasPrefix(b[BaseLen:], again[BaseLen:]))
	})
}

// FuzzHandle: no request crashes a reflector, and a reply is as long as it.
func FuzzHandle(f *testing.F) {
	key := seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, cfg := range []ReflectorConfig{{}, {Stateful: true}, {Key: key, Stateful: true}} {
			r := newReflector(t, cfg)
			// Once as it is, once with an authentic base, so that the TLVs are reached.
			packets := [][]byte{b}
			if cfg.Key != nil && len(b) >= BaseLenAuth && len(b) <= MaxLen {
				s := append([]byte(nil), b...)
				cfg.Key.sign(s[macAt:BaseLenAuth], s[:macAt], nil)
				packets = append(packets, s)
			}
			for i, p := range packets {
				before := append([]byte(nil), p...)
				now := int64(i+1) * second
				reply, err := r.Handle(p, peerA, Stamp{Raw: now, Unix: now, Kind: KindKernel}, 64, now, nil)
				require.True(t, bytes.Equal(before, p), "the request was changed")
				if err != nil {
					require.Empty(t, reply)
					continue
				}
				require.Len(t, reply, len(p))
				_, err = DecodeReply(reply, cfg.Key)
				require.NoError(t, err)
				r.Sent(peerA, r.Number(), Stamp{Raw: 1, Kind: KindKernel})
				_, err = r.Handle(reply, peerB, Stamp{Raw: now, Unix: now, Kind: KindUser}, 64, now, nil)
				require.ErrorIs(t, err, ErrLoop)
			}
		}
	})
}

// FuzzReceived: no reply crashes a sender, and none that is not the reflector's
// completes an exchange.
func FuzzReceived(f *testing.F) {
	key := seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, k := range []*Key{nil, key} {
			w := newWire(t, SenderConfig{Key: k, Pending: 2}, true)
			for i := range 3 {
				w.send(int64(i)*ms, Single)
			}
			p := append([]byte(nil), b...)
			if l := layoutOf(k); len(p) >= l.size && len(p) <= MaxLen {
				// A reply to what was sent last, whatever else is in it.
				r := Reply{Error: Estimate(1), SenderSeq: 2, SenderTime: PTP(2*ms + w.unix), Seq: 1}
				r.put(p, l)
				if k != nil {
					k.sign(p[macAt:BaseLenAuth], p[:macAt], nil)
				}
			}
			for _, p := range [][]byte{b, p, p} {
				got, _ := w.receive(p, second)
				require.Empty(t, got)
			}
			got, _ := w.s.Expire(100*second, nil)
			require.LessOrEqual(t, len(got), 1)
			for _, x := range got {
				require.Equal(t, uint32(2), x.Seq)
				require.LessOrEqual(t, len(x.PeerClock), MaxID)
			}
		}
	})
}
