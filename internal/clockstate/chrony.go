// SPDX-License-Identifier: Apache-2.0

package clockstate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Where chronyd listens unless it is told otherwise. The socket is readable by root
// and chronyd's own user; the port answers anyone on the host.
const (
	ChronySocket = "/run/chrony/chronyd.sock"
	ChronyUDP    = "127.0.0.1:323"
)

// chronyd's monitoring protocol, version 6.
const (
	chronyVersion  = 6
	chronyRequest  = 1
	chronyReply    = 2
	chronyTracking = 33 // command
	chronyReport   = 5  // form of its reply

	chronyReplyHeader = 28
	// trackingLength is the header, the report and the end mark. A request is as
	// long: chronyd answers no shorter one, so that it does not amplify.
	trackingLength = chronyReplyHeader + 76

	leapUnsynchronised = 3
)

// Tracking is what chronyd says of the host's real-time clock.
type Tracking struct {
	RefID   uint32     // of the server or receiver that is followed; 0 none
	Server  netip.Addr // invalid where a receiver is followed, or nothing
	Stratum uint16
	Leap    uint16
	Updated time.Time // of the last update

	// Correction is the seconds that the clock is behind what chronyd takes the time
	// for; negative where it is ahead.
	Correction float64
	LastOffset float64 // s
	RMSOffset  float64 // s
	Frequency  float64 // ppm by which the clock would be fast if chronyd did nothing
	Skew       float64 // ppm, chronyd's bound of its error
	RootDelay  float64 // s, to the server at stratum 1 and back
	// RootDispersion in s; with half of RootDelay it bounds the error of Correction if
	// all servers on the way are right.
	RootDispersion float64
}

// ReadChrony asks chronyd at an address: ChronySocket, ChronyUDP or others like them.
func ReadChrony(ctx context.Context, address string) (Tracking, error) {
	sequence := rand.Uint32()
	var t Tracking
	err := ask(ctx, address, [][]byte{trackingRequest(sequence)}, func(reply []byte) (bool, error) {
		if len(reply) >= 20 && binary.BigEndian.Uint32(reply[16:]) != sequence {
			return false, nil // to an earlier question
		}
		var err error
		t, err = decodeTracking(reply)
		return true, err
	})
	if err != nil {
		return Tracking{}, fmt.Errorf("read chronyd: %w", err)
	}
	return t, nil
}

func trackingRequest(sequence uint32) []byte {
	b := make([]byte, trackingLength)
	b[0], b[1] = chronyVersion, chronyRequest
	binary.BigEndian.PutUint16(b[4:], chronyTracking)
	binary.BigEndian.PutUint32(b[8:], sequence)
	return b
}

func decodeTracking(b []byte) (Tracking, error) {
	be := binary.BigEndian
	if len(b) < chronyReplyHeader {
		return Tracking{}, fmt.Errorf("decode reply: got %d bytes; want %d or more", len(b), chronyReplyHeader)
	}
	if b[0] != chronyVersion || b[1] != chronyReply {
		return Tracking{}, fmt.Errorf("decode reply: got version %d, type %d; want %d, %d", b[0], b[1], chronyVersion, chronyReply)
	}
	if command, form := be.Uint16(b[4:]), be.Uint16(b[6:]); command != chronyTracking {
		return Tracking{}, fmt.Errorf("decode reply: got command %d, form %d; want %d, %d", command, form, chronyTracking, chronyReport)
	}
	if status := be.Uint16(b[8:]); status != 0 {
		return Tracking{}, fmt.Errorf("decode reply: got status %d; want 0", status)
	}
	if form := be.Uint16(b[6:]); form != chronyReport || len(b) != trackingLength {
		return Tracking{}, fmt.Errorf("decode reply: got form %d of %d bytes; want %d of %d", form, len(b), chronyReport, trackingLength)
	}
	d := b[chronyReplyHeader:]
	t := Tracking{
		RefID:          be.Uint32(d),
		Server:         chronyAddress(d[4:24]),
		Stratum:        be.Uint16(d[24:]),
		Leap:           be.Uint16(d[26:]),
		Updated:        time.Unix(int64(be.Uint64(d[28:])), int64(be.Uint32(d[36:])%1e9)),
		Correction:     chronyFloat(be.Uint32(d[40:])),
		LastOffset:     chronyFloat(be.Uint32(d[44:])),
		RMSOffset:      chronyFloat(be.Uint32(d[48:])),
		Frequency:      chronyFloat(be.Uint32(d[52:])),
		Skew:           chronyFloat(be.Uint32(d[60:])),
		RootDelay:      chronyFloat(be.Uint32(d[64:])),
		RootDispersion: chronyFloat(be.Uint32(d[68:])),
	}
	return t, nil
}

// chronyAddress decodes 16 bytes of an address, the family and two of padding.
func chronyAddress(b []byte) netip.Addr {
	switch binary.BigEndian.Uint16(b[16:]) {
	case 1:
		return netip.AddrFrom4([4]byte(b[:4]))
	case 2:
		return netip.AddrFrom16([16]byte(b[:16]))
	}
	return netip.Addr{}
}

// chronyFloat decodes 7 bits of exponent and 25 of coefficient, both signed; the
// coefficient is in 2^-25 of what the exponent says.
func chronyFloat(x uint32) float64 {
	const coefficientBits = 25
	exponent := int32(x) >> coefficientBits
	coefficient := int32(x<<(32-coefficientBits)) >> (32 - coefficientBits)
	return math.Ldexp(float64(coefficient), int(exponent)-coefficientBits)
}

// Synchronised says whether chronyd follows anything.
func (t *Tracking) Synchronised() bool { return t.RefID != 0 && t.Leap < leapUnsynchronised }

// chronySlew is the fastest that chronyd slews a clock, dimensionless: what the
// correction can change while it is read.
const chronySlew = 0.0833334

// secondsLimit is beyond every offset of clocks that somebody uses, and far from
// where nanoseconds overflow.
const secondsLimit = 1e9

// Edge is what the tracking says of a real-time clock that read before and after
// while chronyd was asked; false where it says nothing.
func (t *Tracking) Edge(realtime string, before, after int64) (model.ClockEdge, bool) {
	bound := t.RootDispersion + t.RootDelay/2
	if !t.Synchronised() || after < before || bound < 0 || !(bound+math.Abs(t.Correction) < secondsLimit) {
		return model.ClockEdge{}, false
	}
	offset := nanoseconds(t.Correction)
	width := int64(math.Ceil(bound*1e9 + chronySlew*float64(after-before)/2))
	return model.ClockEdge{
		Src: realtime, Dst: t.reference(realtime),
		At: before + (after-before)/2, Span: after - before,
		Offset: offset, Lower: offset - width - 1, Upper: offset + width + 1,
		Sigma:   math.Max(1, math.Abs(t.RMSOffset)*1e9),
		Samples: 1, Source: model.EdgeChrony,
		// chronyd does not say how it took its stamps.
		Stamps: model.StampUser,
	}, true
}

// reference names what chronyd follows.
func (t *Tracking) reference(realtime string) string {
	if !t.Server.IsValid() || t.Server.IsLoopback() {
		return fmt.Sprintf("utc:chrony/%08X/%s", t.RefID, realtime)
	}
	return fmt.Sprintf("utc:chrony/%08X", t.RefID)
}

func nanoseconds(s float64) int64 { return int64(math.Round(s * 1e9)) }
