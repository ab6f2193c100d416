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
	var gives *entry[sessionKey, session]
	if len(r.held[from]) >= r.cfg.PerPeer || r.sessions.full() {
		ticket := r.ticket(k)
		told, ok := r.told(req)
		if proven = ok && told == ticket; ok && !proven {
			return &session{instance: ticket, passing: true}, r.charge(from, now, true)
		}
		if gives = r.givesWay(k, proven, now); gives == nil {
			r.c.Full++
			return nil, ErrFull
		}
	}
	if err := r.charge(from, now, false); err != nil {
		return nil, err
	}
	if gives != nil {
		r.peers.find(from).room = now
		r.sessions.drop(gives)
	}
	r.held[from] = append(r.held[from], k)
	s := r.sessions.add(k, now)
	*s = session{
		window: window{top: seq, seen: 1}, at: now, begun: now, proven: proven,
		instance: 1 + rand.Uint32N(1<<32-1), // 0 is what a sender tells that knows none
	}
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

func rightOf(e *entry[sessionKey, session], now int64) int {
	silent := now-e.used >= stale
	switch {
	case e.v.proven && silent:
		return provenSilent
	case e.v.proven:
		return provenGoesOn
	case e.used-e.v.begun < young:
		return begun
	case silent:
		return wentSilent
	}
	return goesOn
}

// givesWay is the session with the least right to its place, of these the one silent for
// longest; nil where none gives way. Who tells no instance can prove nothing: none that goes
// on or is proven gives way to it, and others so rarely that a new one has gone on before its
// turn comes, and that replays cost little credit.
func (r *Reflector) givesWay(k sessionKey, proven bool, now int64) *entry[sessionKey, session] {
	most, held := provenSilent, r.held[k.peer.Addr()]
	if !proven {
		l := r.peers.find(k.peer.Addr())
		if l == nil || now-l.room < second/int64(r.cfg.PerPeer) {
			return nil
		}
		most = wentSilent
	}
	var last *entry[sessionKey, session]
	right := most + 1
	rival := func(e *entry[sessionKey, session]) {
		if n := rightOf(e, now); n < right || n == right && last != nil && e.used < last.used {
			last, right = e, n
		}
	}
	switch {
	case len(held) >= r.cfg.PerPeer:
		for _, other := range held {
			rival(r.sessions.m[other])
		}
	case proven: // addresses of others have taken all places
		for _, e := range r.sessions.m {
			rival(e)
		}
	}
	return last
}
