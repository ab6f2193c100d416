// SPDX-License-Identifier: Apache-2.0

package clockstate

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// trackingReply is put together by hand from the protocol's structures: 10.0.0.7 at
// stratum 2, 0.25 s slow.
func trackingReply(t *testing.T) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join([]string{
		"06 02 00 00 0021 0005 0000 0000 0000 0000 01020304 00000000 00000000", // header
		"0a000007", // refid
		"0a000007 00000000 00000000 00000000 0001 0000", // address, IPv4
		"0002 0000",                  // stratum, leap
		"00000000 60000000 00000064", // updated, 100 ns after the second
		"00800000",                   // correction: 2^23 of 2^25, exponent 0: 0.25
		"02800000",                   // last offset: the same, exponent 1: 0.5
		"00000000", "00000000", "00000000", "00000000",
		"00000000", "00000000", "00000000",
	}, " "), " ", ""))
	require.NoError(t, err)
	require.Len(t, b, trackingLength)
	return b
}

func TestTrackingIsDecodedByField(t *testing.T) {
	tracking, err := decodeTracking(trackingReply(t))
	require.NoError(t, err)
	assert.Equal(t, uint32(0x0a000007), tracking.RefID)
	assert.Equal(t, "10.0.0.7", tracking.Server.String())
	assert.Equal(t, uint16(2), tracking.Stratum)
	assert.Equal(t, int64(0x60000000)*1e9+100, tracking.Updated.UnixNano())
	assert.InDelta(t, 0.25, tracking.Correction, 0)
	assert.InDelta(t, 0.5, tracking.LastOffset, 0)
	assert.True(t, tracking.Synchronised())
}

// The coefficient is a signed fraction of 25 bits, the exponent a signed 7 bits.
func TestFloatsOfChronyd(t *testing.T) {
	for bits, want := range map[uint32]float64{
		0:          0,
		0x02800000: 0.5,              // 2^23/2^25 * 2^1
		0x03800000: -0.5,             // coefficient -2^23
		0xfe800000: 0.125,            // exponent -1
		0x80800000: 0x1p-2 * 0x1p-64, // smallest exponent
		0x7effffff: 0x1.fffffep61,    // largest: (2^24-1)/2^25 * 2^63
	} {
		assert.InDelta(t, want, chronyFloat(bits), 0, "%#x", bits)
	}
}

func TestRepliesThatAreRefused(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"truncated":     func(b []byte) []byte { return b[:len(b)-1] },
		"short":         func(b []byte) []byte { return b[:27] },
		"empty":         func([]byte) []byte { return nil },
		"longer":        func(b []byte) []byte { return append(b, 0) },
		"other version": func(b []byte) []byte { b[0] = 5; return b },
		"a request":     func(b []byte) []byte { b[1] = 1; return b },
		"other command": func(b []byte) []byte { b[5] = 14; return b },
		"other form":    func(b []byte) []byte { b[7] = 1; return b },
		"not allowed":   func(b []byte) []byte { b[9] = 2; return b },
	} {
		_, err := decodeTracking(change(trackingReply(t)))
		assert.ErrorContains(t, err, "want", name)
	}
}

func TestTrackingBoundsTheClock(t *testing.T) {
	tracking, err := decodeTracking(trackingReply(t))
	require.NoError(t, err)
	tracking.RootDelay, tracking.RootDispersion, tracking.RMSOffset = 0.002, 0.001, 0.0003
	edge, ok := tracking.Edge("host:a/1/realtime", 1_000_000_000, 1_000_000_200)
	require.True(t, ok)
	assert.Equal(t, "host:a/1/realtime", edge.Src)
	assert.Equal(t, "utc:chrony/0A000007", edge.Dst)
	assert.Equal(t, int64(1_000_000_100), edge.At)
	// 1 ms + 2 ms / 2, and what a slew of 83333.4 ppm makes of 100 ns: 8.33 ns.
	assert.Equal(t, int64(250_000_000), edge.Offset)
	assert.Equal(t, int64(248_000_000-9-1), edge.Lower)
	assert.Equal(t, int64(252_000_000+9+1), edge.Upper)
	assert.InDelta(t, 300_000, edge.Sigma, 1)
	assert.Equal(t, model.EdgeChrony, edge.Source)
}

func TestTrackingThatSaysNothing(t *testing.T) {
	for name, change := range map[string]func(*Tracking){
		"no reference":       func(t *Tracking) { t.RefID = 0 },
		"unsynchronised":     func(t *Tracking) { t.Leap = 3 },
		"negative bound":     func(t *Tracking) { t.RootDelay = -1 },
		"beyond all offsets": func(t *Tracking) { t.Correction = 2e9 },
	} {
		tracking, err := decodeTracking(trackingReply(t))
		require.NoError(t, err)
		change(&tracking)
		_, ok := tracking.Edge("host:a/1/realtime", 0, 1)
		assert.False(t, ok, name)
	}
	tracking, err := decodeTracking(trackingReply(t))
	require.NoError(t, err)
	_, ok := tracking.Edge("host:a/1/realtime", 1, 0)
	assert.False(t, ok, "the clock went back while it was read")
}

// A receiver or a server on the host itself joins it to no other host.
func TestReferencesOfOneHost(t *testing.T) {
	reply := trackingReply(t)
	copy(reply[chronyReplyHeader+4:], []byte{127, 0, 0, 1})
	loopback, err := decodeTracking(reply)
	require.NoError(t, err)
	reply = trackingReply(t)
	binary.BigEndian.PutUint16(reply[chronyReplyHeader+20:], 0)
	receiver, err := decodeTracking(reply)
	require.NoError(t, err)
	for _, tracking := range []Tracking{loopback, receiver} {
		edge, ok := tracking.Edge("host:a/1/realtime", 0, 1)
		require.True(t, ok)
		assert.Equal(t, "utc:chrony/0A000007/host:a/1/realtime", edge.Dst)
	}
}

func FuzzTracking(f *testing.F) {
	f.Add(make([]byte, trackingLength))
	f.Add(trackingRequest(1))
	f.Fuzz(func(t *testing.T, b []byte) {
		tracking, err := decodeTracking(b)
		if err != nil {
			return
		}
		if edge, ok := tracking.Edge("a", 0, 1000); ok {
			assert.LessOrEqual(t, edge.Lower, edge.Offset)
			assert.LessOrEqual(t, edge.Offset, edge.Upper)
		}
	})
}
