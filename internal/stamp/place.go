// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// begin makes a session for its first request. Who sends recorded requests again from any
// ports begins as many as it likes, but learns nothing from the replies. So where there is
// no place, a request is answered without a session, with a ticket, and one that bears the
// ticket of its port takes the place of a session that nobody has proven to be more than
// recorded.
func (r *Reflector) begin(k sessionKey, seq uint32, req []byte, now int64) (*session, error) {
	from, proven := k.peer.Addr(), false
	var gives sessionKey
	full := len(r.held[from]) >= r.cfg.PerPeer || r.sessions.Len() >= r.cfg.MaxSessions
	if full {
		ticket := r.ticket(k)
		told, ok := r.told(req)
		if proven = ok && told == ticket; ok && !proven {
			return &session{instance: ticket, passing: true}, r.charge(from, now, true)
		}
		if gives, ok = r.givesWay(k, proven, now); !ok {
			r.c.Full++
			return nil, ErrFull
		}
	}
	if err := r.charge(from, now, false); err != nil {
		return nil, err
	}
	if full {
		l, _ := r.peers.Peek(from)
		l.room = now
		r.sessions.Delete(gives)
		r.release(gives)
	}
	r.held[from] = append(r.held[from], k)
	s := &session{
		window: window{top: seq, seen: 1}, at: now, begun: now, used: now, proven: proven,
		instance: 1 + rand.Uint32N(1<<32-1), // 0 is what a sender tells that knows none
	}
	r.sessions.Set(k, s)
	return s, nil
}

// ticket is what a reply tells the sender of a session that has no place.
func (r *Reflector) ticket(k sessionKey) uint32 {
	b, _ := k.peer.MarshalBinary() // never fails
	h := hmac.New(sha256.New, r.secret[:])
	h.Write(binary.BigEndian.AppendUint16(b, k.ssid))
	return max(1, binary.BigEndian.Uint32(h.Sum(nil)))
}

// told returns the instance that a request tells; false where its sender tells none, ever.
func (r *Reflector) told(req []byte) (instance uint32, ok bool) {
	if !r.cfg.Stateful {
		return 0, false
	}
	a := divide(req[r.layout.size:])
	if a.check(r.cfg.Key, req, false); a.fault != 0 {
		return 0, false
	}
	for v := range a.signed.All() {
		if v.Type == TypeClock && ours(v.Value) {
			return binary.BigEndian.Uint32(v.Value[clockInstance:]), true
		}
	}
	return 0, false
}

// By how much a session has a right to its place, the least first.
const (
	begun      = iota
	wentSilent // it went on for a while
	goesOn
	provenSilent
	provenGoesOn
)

func (s *session) right(now int64) int {
	silent := now-s.used >= stale
	switch {
	case s.proven && silent:
		return provenSilent
	case s.proven:
		return provenGoesOn
	case s.used-s.begun < young:
		return begun
	case silent:
		return wentSilent
	}
	return goesOn
}

// givesWay is the session with the least right to its place, of these the one silent for
// longest; false where none gives way. Who tells no instance can prove nothing: none that goes
// on or is proven gives way to it, and others so rarely that a new one has gone on before its
// turn comes, and that replays cost little credit.
func (r *Reflector) givesWay(k sessionKey, proven bool, now int64) (gives sessionKey, ok bool) {
	most, held := provenSilent, r.held[k.peer.Addr()]
	if !proven {
		l, known := r.peers.Peek(k.peer.Addr())
		if !known || now-l.room < second/int64(r.cfg.PerPeer) {
			return gives, false
		}
		most = wentSilent
	}
	var last *session
	right := most + 1
	rival := func(other sessionKey, s *session) {
		if n := s.right(now); n < right || n == right && last != nil && s.used < last.used {
			gives, last, right = other, s, n
		}
	}
	switch {
	case len(held) >= r.cfg.PerPeer:
		for _, other := range held {
			s, _ := r.sessions.Peek(other)
			rival(other, s)
		}
	case proven: // addresses of others have taken all places
		for other, s := range r.sessions.All() {
			rival(other, s)
		}
	}
	return gives, last != nil
}
