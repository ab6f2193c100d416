// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unhex reads hex with blanks.
func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(tb, err)
	return b
}

func testKey(tb testing.TB) *Key {
	tb.Helper()
	k, err := NewKey(unhex(tb, "000102030405060708090a0b0c0d0e0f"))
	require.NoError(tb, err)
	return k
}

func zeros(n int) string { return strings.Repeat("00", n) }

var (
	aRequest = Request{Seq: 0x01020304, Time: 0x6553F100_075BCD15, Error: 0x4001, SSID: 0xBEEF}
	aReply   = Reply{
		Seq: 0x11121314, Time: 0x21222324_25262728, Error: 0x4102, SSID: 0xBEEF, Received: 0x31323334_35363738,
		SenderSeq: 0x41424344, SenderTime: 0x51525354_55565758, SenderError: 0x4203, SenderTTL: 0x3f,
	}
)

// The layouts below are the RFC's figures, written down by hand.
func TestPacketsAreTheSpecifications(t *testing.T) {
	key := testKey(t)
	for name, c := range map[string]struct {
		key  *Key
		got  []byte
		want string
	}{
		"request": {
			got:  aRequest.Append(nil, nil),
			want: "01020304 6553F100075BCD15 4001 BEEF" + zeros(28),
		},
		"reply": {
			got: aReply.Append(nil, nil),
			want: "11121314 2122232425262728 4102 BEEF 3132333435363738" +
				"41424344 5152535455565758 4203 0000 3f 000000",
		},
		// The digest is that of `openssl dgst -sha256 -mac HMAC` of the first 96 bytes.
		"signed request": {
			got: aRequest.Append(nil, key),
			want: "01020304" + zeros(12) + "6553F100075BCD15 4001 BEEF" + zeros(68) +
				"40b403b2a6bf02b64a09ac26886b048c",
		},
		"signed reply": {
			got: aReply.Append(nil, key)[:96],
			want: "11121314" + zeros(12) + "2122232425262728 4102 BEEF" + zeros(4) + "3132333435363738" + zeros(8) +
				"41424344" + zeros(12) + "5152535455565758 4203" + zeros(6) + "3f" + zeros(15),
		},
	} {
		assert.Equal(t, hex.EncodeToString(unhex(t, c.want)), hex.EncodeToString(c.got), name)
	}
}

// TestTLVsAreSigned: the TLVs' digest is over the sequence number and them, as
// openssl computes it.
func TestTLVsAreSigned(t *testing.T) {
	r := aRequest
	var err error
	r.TLVs, err = r.TLVs.Append(TypePadding, unhex(t, "deadbeef"))
	require.NoError(t, err)
	got := r.Append(nil, testKey(t))
	assert.Equal(t, "80010004deadbeef"+"80080010"+"e4393192615a84674d805fa651f7e499", hex.EncodeToString(got[112:]))
}

// TestSignatures: what crypto/hmac says of the packet, and that no byte of it can
// be changed.
func TestSignatures(t *testing.T) {
	key := testKey(t)
	r := aReply
	var err error
	r.TLVs, err = r.TLVs.AppendClock(&Clock{ID: "host:a/b/raw"})
	require.NoError(t, err)
	r.TLVs[0] = 0 // as a reflector leaves the flags
	b := r.Append(nil, key)
	m := hmac.New(sha256.New, unhex(t, "000102030405060708090a0b0c0d0e0f"))
	m.Write(b[:96])
	assert.Equal(t, m.Sum(nil)[:16], b[96:112])
	m.Reset()
	m.Write(b[:4])
	m.Write(b[112 : len(b)-20])
	assert.Equal(t, m.Sum(nil)[:16], b[len(b)-16:])

	got, err := DecodeReply(b, key)
	require.NoError(t, err)
	copy(r.TLVs[tlvHeader+240:], b[96:112]) // bound to the base
	assert.Equal(t, r, got)
	for i := range b {
		if i == len(b)-20 {
			continue // the digest's own flags are not signed, and nothing rests on them
		}
		b[i] ^= 1
		got, err := DecodeReply(b, key)
		if i < 112 {
			require.ErrorIs(t, err, ErrForged, "byte %d", i)
		} else {
			require.NoError(t, err)
			assert.NotZero(t, got.Fault, "byte %d", i)
		}
		b[i] ^= 1
	}
	other, err := NewKey(make([]byte, 16))
	require.NoError(t, err)
	_, err = DecodeReply(b, other)
	require.ErrorIs(t, err, ErrForged)
}

func TestRoundTrip(t *testing.T) {
	for _, key := range []*Key{nil, testKey(t)} {
		q, err := DecodeRequest(aRequest.Append(nil, key), key)
		require.NoError(t, err)
		q.TLVs = nil
		assert.Equal(t, aRequest, q)
		p, err := DecodeReply(aReply.Append(nil, key), key)
		require.NoError(t, err)
		p.TLVs = nil
		assert.Equal(t, aReply, p)
	}
}

func TestSizesAreRefused(t *testing.T) {
	key := testKey(t)
	for name, c := range map[string]struct {
		n    int
		key  *Key
		want string
	}{
		"empty":      {0, nil, "decode request: got 0 bytes; want at least 44"},
		"short":      {43, nil, "decode request: got 43 bytes; want at least 44"},
		"for a key":  {44, key, "decode request: got 44 bytes; want at least 112"},
		"long":       {1473, nil, "decode request: got 1473 bytes; want at most 1472"},
		"not signed": {112, key, "decode request: HMAC does not match the key"},
	} {
		_, err := DecodeRequest(make([]byte, c.n), c.key)
		require.EqualError(t, err, c.want, name)
	}
	for _, n := range []int{15, 4097} {
		_, err := NewKey(make([]byte, n))
		require.ErrorContains(t, err, "want 16 to 4096")
	}
}

func TestClockRoundTrip(t *testing.T) {
	want := Clock{
		Flags: ClockSecond | ClockStateful, Path: 3, Pair: 77, Instance: 0x91929394, ID: strings.Repeat("x", MaxID),
		Received: -5, ReceivedKind: KindKernel, ReceivedWidth: 90, Count: 2,
		Follows: [MaxFollows]Follow{{1, 2, KindHardware, 4}, {0xffffffff, -1 << 63, KindUser, 0xffffffff}},
	}
	tlvs, err := TLVs(nil).AppendClock(&want)
	require.NoError(t, err)
	for v := range tlvs.All() {
		got, err := DecodeClock(v.Value)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err = TLVs(nil).AppendClock(&Clock{ID: strings.Repeat("x", MaxID+1)})
	require.EqualError(t, err, "append clock TLV: got id of 129 bytes; want at most 128")
}

func TestClockIsRefused(t *testing.T) {
	tlvs, err := TLVs(nil).AppendClock(&Clock{ID: "a", Count: 1})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		at   int
		to   byte
		want string
	}{
		"enterprise": {3, 0, "got enterprise 32256, version 193; want 32473, 193"},
		"version":    {4, 1, "got enterprise 32473, version 1; want 32473, 193"},
		"id":         {7, 129, "got id of 129 bytes; want at most 128"},
		"kind":       {24, 4, "got kind 4 of the receive stamp; want at most 3"},
		"count":      {25, 5, "got 5 follow-ups; want at most 4"},
		"follow-up":  {48, 9, "got kind 9 of follow-up 0; want at most 3"},
	} {
		v := append([]byte(nil), tlvs[tlvHeader:]...)
		v[c.at] = c.to
		_, err := DecodeClock(v)
		require.EqualError(t, err, "decode clock TLV: "+c.want, name)
	}
	_, err = DecodeClock(tlvs)
	require.EqualError(t, err, "decode clock TLV: got 260 bytes; want 256")
	_, err = DecodeFollowUp(tlvs)
	require.EqualError(t, err, "decode follow-up TLV: got 260 bytes; want 16")
}

// TestProbesHaveTheSizesOfTheDocuments: docs/format/stamp.md and docs/adr/0017 name
// them.
func TestProbesHaveTheSizesOfTheDocuments(t *testing.T) {
	for want, key := range map[int]*Key{304: nil, 392: testKey(t)} {
		b, _ := newSender(t, SenderConfig{Key: key, ClockID: "host:a/b/raw"}).Next(Stamp{}, First, nil)
		assert.Len(t, b, want)
	}
}
