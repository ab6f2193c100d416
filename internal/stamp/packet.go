// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Sizes of packets, in bytes.
const (
	BaseLen     = 44  // without a key
	BaseLenAuth = 112 // with a key
	MaxLen      = 1472
)

// ErrForged is of a packet whose HMAC does not hold.
var ErrForged = errors.New("HMAC does not match the key")

// Request is a packet of a session-sender.
type Request struct {
	Seq   uint32
	Time  Timestamp // T1, in the format that Error says
	Error ErrorEstimate
	SSID  uint16
	// TLVs stand behind the base packet, without an HMAC.
	TLVs TLVs
	// Fault is FlagMalformed or FlagIntegrity of a decoded packet whose TLVs must
	// not be used.
	Fault uint8
}

// Reply is a packet of a session-reflector.
type Reply struct {
	Seq         uint32 // the reflector's own count where it is stateful, else SenderSeq
	Time        Timestamp
	Error       ErrorEstimate // of Time and Received
	SSID        uint16
	Received    Timestamp
	SenderSeq   uint32
	SenderTime  Timestamp
	SenderError ErrorEstimate
	SenderTTL   uint8
	TLVs        TLVs
	Fault       uint8
}

// layout is where fields stand: seq is at 0 in both.
type layout struct{ size, time, received, senderSeq, senderTime, senderError, ttl int }

var (
	open   = layout{size: BaseLen, time: 4, received: 16, senderSeq: 24, senderTime: 28, senderError: 36, ttl: 40}
	signed = layout{size: BaseLenAuth, time: 16, received: 32, senderSeq: 48, senderTime: 64, senderError: 72, ttl: 80}
)

func layoutOf(key *Key) *layout {
	if key == nil {
		return &open
	}
	return &signed
}

// errorAt and ssidAt follow the timestamp in both layouts.
func (l *layout) errorAt() int { return l.time + 8 }
func (l *layout) ssidAt() int  { return l.time + 10 }

const macAt = BaseLenAuth - macLen

// Append adds the packet to dst, signed where there is a key: its base, and its
// TLVs, if any, by a TLV behind them.
func (r *Request) Append(dst []byte, key *Key) []byte {
	l := layoutOf(key)
	start := len(dst)
	dst = append(dst, make([]byte, l.size)...)
	r.put(dst[start:], l)
	return seal(append(dst, r.TLVs...), start, key)
}

func (r *Request) put(b []byte, l *layout) {
	binary.BigEndian.PutUint32(b, r.Seq)
	putTime(b, l, r.Time, r.Error, r.SSID)
}

// Append adds the packet to dst, signed where there is a key.
func (r *Reply) Append(dst []byte, key *Key) []byte {
	l := layoutOf(key)
	start := len(dst)
	dst = append(dst, make([]byte, l.size)...)
	r.put(dst[start:], l)
	return seal(append(dst, r.TLVs...), start, key)
}

func (r *Reply) put(b []byte, l *layout) {
	be := binary.BigEndian
	be.PutUint32(b, r.Seq)
	putTime(b, l, r.Time, r.Error, r.SSID)
	be.PutUint64(b[l.received:], uint64(r.Received))
	be.PutUint32(b[l.senderSeq:], r.SenderSeq)
	be.PutUint64(b[l.senderTime:], uint64(r.SenderTime))
	be.PutUint16(b[l.senderError:], uint16(r.SenderError))
	b[l.ttl] = r.SenderTTL
}

func putTime(b []byte, l *layout, t Timestamp, e ErrorEstimate, ssid uint16) {
	binary.BigEndian.PutUint64(b[l.time:], uint64(t))
	binary.BigEndian.PutUint16(b[l.errorAt():], uint16(e))
	binary.BigEndian.PutUint16(b[l.ssidAt():], ssid)
}

// seal signs the packet that begins at start.
func seal(dst []byte, start int, key *Key) []byte {
	if key == nil {
		return dst
	}
	b := dst[start:]
	key.sign(b[macAt:BaseLenAuth], b[:macAt], nil)
	if len(b) == BaseLenAuth {
		return dst
	}
	bind(b)
	dst = append(dst, FlagUnrecognized, TypeHMAC, 0, macLen)
	dst = append(dst, make([]byte, macLen)...)
	b = dst[start:]
	end := len(b) - macLen
	key.sign(b[end:], b[:4], b[BaseLenAuth:end-tlvHeader])
	return dst
}

// DecodeRequest reads a request; with a key, one whose base is not authentic is
// an error that wraps ErrForged. TLVs that cannot be used are no error (a
// reflector answers with their flags) but a Fault. The TLVs alias b.
func DecodeRequest(b []byte, key *Key) (Request, error) {
	l := layoutOf(key)
	if err := admit(b, key); err != nil {
		return Request{}, fmt.Errorf("decode request: %w", err)
	}
	r := Request{Seq: binary.BigEndian.Uint32(b)}
	r.Time, r.Error, r.SSID = getTime(b, l)
	r.TLVs, r.Fault = extensions(b, l, key, false)
	return r, nil
}

// DecodeReply reads a reply as DecodeRequest reads a request.
func DecodeReply(b []byte, key *Key) (Reply, error) {
	l := layoutOf(key)
	if err := admit(b, key); err != nil {
		return Reply{}, fmt.Errorf("decode reply: %w", err)
	}
	be := binary.BigEndian
	r := Reply{
		Seq: be.Uint32(b), Received: Timestamp(be.Uint64(b[l.received:])),
		SenderSeq: be.Uint32(b[l.senderSeq:]), SenderTime: Timestamp(be.Uint64(b[l.senderTime:])),
		SenderError: ErrorEstimate(be.Uint16(b[l.senderError:])), SenderTTL: b[l.ttl],
	}
	r.Time, r.Error, r.SSID = getTime(b, l)
	r.TLVs, r.Fault = extensions(b, l, key, true)
	for v := range r.TLVs.All() {
		r.Fault |= v.Flags & (FlagMalformed | FlagIntegrity) // what the reflector found
	}
	return r, nil
}

// admit refuses what is no packet, or not of the key's owner.
func admit(b []byte, key *Key) error {
	switch least := layoutOf(key).size; {
	case len(b) < least:
		return fmt.Errorf("got %d bytes; want at least %d", len(b), least)
	case len(b) > MaxLen:
		return fmt.Errorf("got %d bytes; want at most %d", len(b), MaxLen)
	case key != nil && !key.verify(b[macAt:BaseLenAuth], b[:macAt], nil):
		return ErrForged
	}
	return nil
}

func getTime(b []byte, l *layout) (Timestamp, ErrorEstimate, uint16) {
	be := binary.BigEndian
	return Timestamp(be.Uint64(b[l.time:])), ErrorEstimate(be.Uint16(b[l.errorAt():])), be.Uint16(b[l.ssidAt():])
}

func extensions(b []byte, l *layout, key *Key, reply bool) (TLVs, uint8) {
	a := divide(b[l.size:])
	a.check(key, b, reply)
	return a.signed[:len(a.signed):len(a.signed)], a.fault
}
