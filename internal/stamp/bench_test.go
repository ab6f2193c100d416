// SPDX-License-Identifier: Apache-2.0

package stamp

import "testing"

// BenchmarkExchange is what both ends pay for one request and its reply.
func BenchmarkExchange(b *testing.B) {
	for name, key := range map[string]*Key{"open": nil, "signed": testKey(b)} {
		b.Run(name, func(b *testing.B) {
			s := newSender(b, SenderConfig{Key: key, ClockID: "host:a/b/raw"})
			r := newReflector(b, ReflectorConfig{Key: key, Stateful: true, ClockID: "host:c/d/raw", Rate: maxRate})
			b.ReportAllocs()
			var req, reply []byte
			var done []Exchange
			now := int64(0)
			for b.Loop() {
				now += ms
				var seq uint32
				st := Stamp{Raw: now, Unix: now, Kind: KindKernel}
				req, seq = s.Next(st, Single, req[:0])
				s.Sent(seq, st)
				var err error
				if reply, err = r.Handle(req, peerA, st, 64, now, reply[:0]); err != nil {
					b.Fatal(err)
				}
				r.Sent(peerA, r.Number(), st)
				if done, err = s.Received(reply, st, done[:0]); err != nil {
					b.Fatal(err)
				}
				done, _ = s.Expire(now, done)
			}
		})
	}
}
