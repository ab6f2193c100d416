// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

// Types of TLVs that are understood here.
const (
	TypePadding  = 1   // Extra Padding
	TypeFollowUp = 7   // Follow-Up Telemetry
	TypeHMAC     = 8   // authenticates the TLVs before it
	TypeClock    = 252 // ours, of the range for private use
)

// Flags of a TLV. A sender sets U and clears the others; a reflector sets what it
// found.
const (
	FlagUnrecognized = 0x80 // U: the reflector did not understand the TLV
	FlagMalformed    = 0x40 // M: its length is impossible
	FlagIntegrity    = 0x20 // I: the TLVs' HMAC does not hold
)

const tlvHeader = 4

// TLV is one extension. Value aliases the packet.
type TLV struct {
	Flags uint8
	Type  uint8
	Value []byte
}

// TLVs are the extensions of a packet, as they stand in it.
type TLVs []byte

// Append adds a TLV with the flags that a sender sets.
func (t TLVs) Append(kind uint8, value []byte) (TLVs, error) {
	if len(value) > math.MaxUint16 {
		return t, fmt.Errorf("append TLV %d: got %d bytes; want at most %d", kind, len(value), math.MaxUint16)
	}
	t = append(t, FlagUnrecognized, kind)
	t = binary.BigEndian.AppendUint16(t, uint16(len(value)))
	return append(t, value...), nil
}

// All yields the TLVs in order, up to the first malformed one.
func (t TLVs) All() iter.Seq[TLV] {
	return func(yield func(TLV) bool) {
		for rest := []byte(t); len(rest) >= tlvHeader; {
			n, ok := tlvLen(rest)
			if !ok || !yield(TLV{Flags: rest[0], Type: rest[1], Value: rest[tlvHeader:n:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// Find returns the first TLV of a type that the other end understood.
func (t TLVs) Find(kind uint8) (TLV, bool) {
	for v := range t.All() {
		if v.Type == kind && v.Flags&(FlagUnrecognized|FlagMalformed|FlagIntegrity) == 0 {
			return v, true
		}
	}
	return TLV{}, false
}

// tlvLen is the size of the TLV at the beginning of b, its header included; false
// where b is too short for it.
func tlvLen(b []byte) (int, bool) {
	n := tlvHeader + int(binary.BigEndian.Uint16(b[2:]))
	return n, n <= len(b)
}

// knownLength reports whether a TLV of a type that has one has the right length.
func knownLength(kind uint8, n int) bool {
	switch kind {
	case TypeFollowUp:
		return n == followUpLen
	case TypeHMAC:
		return n == macLen
	}
	return true
}

// area is what stands behind the base packet, taken apart.
type area struct {
	// signed are the TLVs that the HMAC covers: all where there is none.
	signed TLVs
	// mac is the HMAC's value, nil where there is none.
	mac []byte
	// fault is FlagMalformed or FlagIntegrity where the TLVs must not be used.
	fault uint8
	// only: there is nothing but one Extra Padding, which needs no HMAC.
	only bool
}

// divide takes the extensions apart. Behind the HMAC only Extra Padding may stand
// (RFC 8972, 4.8); less than a header's bytes at the end are no TLV.
func divide(b []byte) area {
	a := area{signed: b}
	count := 0
	for at := 0; len(b)-at >= tlvHeader; count++ {
		n, ok := tlvLen(b[at:])
		kind := b[at+1]
		switch {
		case !ok || !knownLength(kind, n-tlvHeader):
			a.fault |= FlagMalformed
			return a
		case a.mac != nil && kind != TypePadding:
			a.fault |= FlagIntegrity
			return a
		case kind == TypeHMAC:
			a.signed, a.mac = b[:at], b[at+tlvHeader:at+n]
		}
		a.only = count == 0 && kind == TypePadding
		at += n
	}
	if count > 1 {
		a.only = false
	}
	return a
}

// check sets the fault where the TLVs of a packet are not authentic: with a key,
// without a good HMAC or bound to another base; without a key, where there is an
// HMAC that nobody can verify.
func (a *area) check(key *Key, packet []byte, reply bool) {
	switch {
	case a.fault != 0:
	case a.mac == nil:
		if key != nil && len(a.signed) > 0 && !a.only {
			a.fault = FlagIntegrity
		}
	case key == nil || !key.verify(a.mac, packet[:4], a.signed):
		a.fault = FlagIntegrity
	case !bound(a.signed, packet[macAt:BaseLenAuth], reply):
		a.fault = FlagIntegrity
	}
}
