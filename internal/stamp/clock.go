// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Enterprise stands in front of the value of a TLV for private use. Lockstep has
// no number of its own: this is the one that IANA keeps for documentation (RFC
// 5612), and ClockVersion behind it tells the TLV from another's.
const (
	Enterprise   = 32473
	ClockVersion = 0xC1
)

// Limits of the Clock TLV.
const (
	MaxID      = 128 // bytes of a clock's id
	MaxFollows = 4
)

// Flags of the Clock TLV.
const (
	ClockFirst    = 1 << 0 // first packet of a coded pair
	ClockSecond   = 1 << 1 // second packet of a coded pair
	ClockStateful = 1 << 2 // of a reply: its sequence number is the reflector's own count
)

const (
	clockReceived = 16
	clockInstance = 28
	clockFollows  = 32
	followLen     = 20
	clockID       = clockFollows + MaxFollows*followLen
	clockBase     = clockID + MaxID
	clockLen      = clockBase + macLen
	followUpLen   = 16
)

// Follow is when an earlier packet of the session left, of the end that says so.
type Follow struct {
	Seq   uint32 // of that packet
	Sent  int64  // raw, ns
	Kind  uint8
	Width uint32 // ns
}

// Clock is our TLV: raw stamps, and whose clock they are of. It has one length,
// so that the answer has room for what a reflector knows.
type Clock struct {
	Flags uint8
	Path  uint8
	Pair  uint32 // number of the coded pair
	// Instance is a number that the reflector drew for the session: its count, and what
	// it tells of earlier replies, begin anew with another. A request repeats that of the
	// reply before, 0 where there was none.
	Instance uint32
	ID       string // of the clock that the raw stamps of this packet are readings of
	// Received is when the packet that this one answers arrived; ReceivedKind is
	// KindNone in a request, of which Received is the mark.
	Received      int64
	ReceivedKind  uint8
	ReceivedWidth uint32
	Follows       [MaxFollows]Follow
	Count         uint8 // of Follows
}

// bind writes the base packet's HMAC into the Clock TLVs behind it. The TLVs' own
// HMAC covers that, and of the base only its number, which is not enough: TLVs of
// another packet with the same number would pass.
func bind(b []byte) {
	for v := range TLVs(b[BaseLenAuth:]).All() {
		if v.Type == TypeClock && ours(v.Value) {
			copy(v.Value[clockBase:], b[macAt:BaseLenAuth])
		}
	}
}

// bound reports whether the Clock TLVs were made for the packet with this HMAC. One
// that a reflector did not understand is still bound to the request.
func bound(t TLVs, mac []byte, reply bool) bool {
	for v := range t.All() {
		echoed := reply && v.Flags&FlagUnrecognized != 0
		if v.Type == TypeClock && ours(v.Value) && !echoed && !bytes.Equal(v.Value[clockBase:], mac) {
			return false
		}
	}
	return true
}

// AppendClock adds a Clock TLV.
func (t TLVs) AppendClock(c *Clock) (TLVs, error) {
	if len(c.ID) > MaxID {
		return t, fmt.Errorf("append clock TLV: got id of %d bytes; want at most %d", len(c.ID), MaxID)
	}
	var b [clockLen]byte
	c.put(&b)
	return t.Append(TypeClock, b[:])
}

// put writes the value, bound to no packet yet. The id is cut to its room, the count to the follow-ups
// that there are.
func (c *Clock) put(b *[clockLen]byte) {
	be := binary.BigEndian
	*b = [clockLen]byte{}
	n := copy(b[clockID:], c.ID)
	be.PutUint32(b[0:], Enterprise)
	b[4], b[5], b[6], b[7] = ClockVersion, c.Flags, c.Path, uint8(n)
	be.PutUint32(b[8:], c.Pair)
	be.PutUint32(b[clockInstance:], c.Instance)
	be.PutUint32(b[12:], c.ReceivedWidth)
	be.PutUint64(b[clockReceived:], uint64(c.Received))
	b[24], b[25] = c.ReceivedKind, min(c.Count, MaxFollows)
	for i, f := range c.Follows[:min(c.Count, MaxFollows)] {
		w := b[clockFollows+i*followLen:]
		be.PutUint32(w, f.Seq)
		be.PutUint32(w[4:], f.Width)
		be.PutUint64(w[8:], uint64(f.Sent))
		w[16] = f.Kind
	}
}

// ours reports whether a value of TypeClock is one of ours, of this version.
func ours(v []byte) bool {
	return len(v) == clockLen && binary.BigEndian.Uint32(v) == Enterprise && v[4] == ClockVersion
}

// DecodeClock reads the value of a Clock TLV. The id is a copy.
func DecodeClock(v []byte) (Clock, error) {
	c, id, err := decodeClock(v)
	c.ID = string(id)
	return c, err
}

// decodeClock returns the id aside, so that who knows it already copies nothing.
func decodeClock(v []byte) (c Clock, id []byte, err error) {
	be := binary.BigEndian
	switch {
	case len(v) != clockLen:
		return c, nil, fmt.Errorf("decode clock TLV: got %d bytes; want %d", len(v), clockLen)
	case !ours(v):
		return c, nil, fmt.Errorf("decode clock TLV: got enterprise %d, version %d; want %d, %d",
			be.Uint32(v), v[4], Enterprise, ClockVersion)
	case v[7] > MaxID:
		return c, nil, fmt.Errorf("decode clock TLV: got id of %d bytes; want at most %d", v[7], MaxID)
	case v[24] > KindHardware:
		return c, nil, fmt.Errorf("decode clock TLV: got kind %d of the receive stamp; want at most %d", v[24], KindHardware)
	case v[25] > MaxFollows:
		return c, nil, fmt.Errorf("decode clock TLV: got %d follow-ups; want at most %d", v[25], MaxFollows)
	}
	c = Clock{
		Flags: v[5], Path: v[6], Pair: be.Uint32(v[8:]), Instance: be.Uint32(v[clockInstance:]), Count: v[25],
		Received: int64(be.Uint64(v[clockReceived:])), ReceivedKind: v[24], ReceivedWidth: be.Uint32(v[12:]),
	}
	for i := range c.Follows[:c.Count] {
		w := v[clockFollows+i*followLen:]
		c.Follows[i] = Follow{Seq: be.Uint32(w), Width: be.Uint32(w[4:]), Sent: int64(be.Uint64(w[8:])), Kind: w[16]}
		if w[16] > KindHardware {
			return Clock{}, nil, fmt.Errorf("decode clock TLV: got kind %d of follow-up %d; want at most %d", w[16], i, KindHardware)
		}
	}
	return c, v[clockID : clockID+int(v[7])], nil
}

// How a follow-up timestamp was taken, of RFC 8972's registry.
const (
	methodHardware = 1
	methodSoftware = 2
)

// FollowUp is RFC 8972's Follow-Up Telemetry: when the reply before this one left.
type FollowUp struct {
	Seq  uint32    // of that reply; with Time 0 nothing is told
	Time Timestamp // in the format of the packet
	Mode uint8     // 1 hardware, 2 software, 3 control plane
}

// AppendFollowUp asks for the follow-up of the reply before, with zeros.
func (t TLVs) AppendFollowUp() TLVs {
	t = append(t, FlagUnrecognized, TypeFollowUp, 0, followUpLen)
	return append(t, make([]byte, followUpLen)...)
}

func (f FollowUp) put(b []byte) {
	clear(b[:followUpLen])
	binary.BigEndian.PutUint32(b, f.Seq)
	binary.BigEndian.PutUint64(b[4:], uint64(f.Time))
	b[12] = f.Mode
}

// DecodeFollowUp reads the value of a Follow-Up Telemetry TLV.
func DecodeFollowUp(v []byte) (FollowUp, error) {
	if len(v) != followUpLen {
		return FollowUp{}, fmt.Errorf("decode follow-up TLV: got %d bytes; want %d", len(v), followUpLen)
	}
	return FollowUp{Seq: binary.BigEndian.Uint32(v), Time: Timestamp(binary.BigEndian.Uint64(v[4:])), Mode: v[12]}, nil
}
