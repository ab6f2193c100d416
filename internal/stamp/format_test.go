// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"encoding/binary"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFormat compares the tables of docs/format/stamp.md with what the code
// writes: every field stands where its table says, and the fields fill it.
func TestFormat(t *testing.T) {
	key := testKey(t)
	be := binary.BigEndian
	u16, u32, u64 := be.AppendUint16, be.AppendUint32, be.AppendUint64
	request := map[string][]byte{
		"seq": u32(nil, aRequest.Seq), "time": u64(nil, uint64(aRequest.Time)),
		"error": u16(nil, uint16(aRequest.Error)), "ssid": u16(nil, aRequest.SSID),
	}
	reply := map[string][]byte{
		"seq": u32(nil, aReply.Seq), "time": u64(nil, uint64(aReply.Time)),
		"error": u16(nil, uint16(aReply.Error)), "ssid": u16(nil, aReply.SSID),
		"received": u64(nil, uint64(aReply.Received)), "sender_seq": u32(nil, aReply.SenderSeq),
		"sender_time": u64(nil, uint64(aReply.SenderTime)), "sender_error": u16(nil, uint16(aReply.SenderError)),
		"sender_ttl": {aReply.SenderTTL},
	}
	c := Clock{
		Flags: 5, Path: 6, Pair: 0x71727374, Instance: 0xb1b2b3b4, ID: "host:a/b/raw", Received: 0x0102030405060708, ReceivedKind: 2,
		ReceivedWidth: 0x81828384, Count: 4, Follows: [4]Follow{{Seq: 0x91929394, Sent: 0x1112131415161718, Kind: 3, Width: 0xa1a2a3a4}},
	}
	var clock [clockLen]byte
	c.put(&clock)
	follow := clock[32:52]
	tlv, err := TLVs(nil).Append(7, make([]byte, 300))
	require.NoError(t, err)
	f := FollowUp{Seq: 0x01020304, Time: 0x1112131415161718, Mode: 2}
	followUp := make([]byte, followUpLen)
	f.put(followUp)

	tables := readTables(t)
	check := func(name string, got []byte, fields map[string][]byte) {
		t.Helper()
		rows := tables[name]
		require.NotEmpty(t, rows, name)
		end := 0
		for _, r := range rows {
			assert.Equal(t, end, r.offset, "%s.%s", name, r.field)
			end = r.offset + r.size
			want, ok := fields[r.field]
			if r.field == "zero" {
				want, ok = make([]byte, r.size), true
			}
			require.True(t, ok, "%s.%s is not compared", name, r.field)
			require.Len(t, want, r.size, "%s.%s", name, r.field)
			assert.Equal(t, want, got[r.offset:end], "%s.%s", name, r.field)
		}
		assert.Len(t, got, end, name)
	}
	check("`request`, 44 bytes", aRequest.Append(nil, nil), request)
	check("`reply`, 44 bytes", aReply.Append(nil, nil), reply)
	signedRequest, signedReply := aRequest.Append(nil, key), aReply.Append(nil, key)
	request["hmac"], reply["hmac"] = signedRequest[96:], signedReply[96:]
	check("`request`, authenticated, 112 bytes", signedRequest, request)
	check("`reply`, authenticated, 112 bytes", signedReply, reply)
	check("`tlv`, 4 bytes", tlv[:4], map[string][]byte{"flags": {0x80}, "type": {7}, "length": u16(nil, 300)})
	check("`follow_up`, 16 bytes", followUp, map[string][]byte{
		"seq": u32(nil, f.Seq), "time": u64(nil, uint64(f.Time)), "mode": {2},
	})
	q := Request{}
	q.TLVs, err = q.TLVs.AppendClock(&c)
	require.NoError(t, err)
	bound := q.Append(nil, key)
	copy(clock[240:], bound[112+4+240:])
	check("`clock`, 256 bytes", clock[:], map[string][]byte{
		"enterprise": u32(nil, 32473), "version": {0xC1}, "flags": {5}, "path": {6}, "id_length": {12},
		"pair": u32(nil, c.Pair), "received_width": u32(nil, c.ReceivedWidth), "received": u64(nil, uint64(c.Received)),
		"instance": u32(nil, c.Instance), "base": bound[96:112],
		"received_kind": {2}, "count": {4}, "follows": append(follow[:20:20], make([]byte, 60)...),
		"id": append([]byte(c.ID), bytes.Repeat([]byte{0}, 128-len(c.ID))...),
	})
	check("`follow`, 20 bytes", follow, map[string][]byte{
		"seq": u32(nil, c.Follows[0].Seq), "width": u32(nil, c.Follows[0].Width),
		"sent": u64(nil, uint64(c.Follows[0].Sent)), "kind": {3},
	})
}

type row struct {
	offset, size int
	field        string
}

var rowPattern = regexp.MustCompile("^\\| (\\d+) \\| (\\d+) \\| `(\\w+)` \\|")

// readTables returns the tables of bytes by the headings they stand under.
func readTables(t *testing.T) map[string][]row {
	t.Helper()
	text, err := os.ReadFile("../../docs/format/stamp.md")
	require.NoError(t, err)
	tables, heading := map[string][]row{}, ""
	for line := range strings.Lines(string(text)) {
		if h, ok := strings.CutPrefix(line, "### "); ok {
			heading = strings.TrimSpace(h)
		}
		if m := rowPattern.FindStringSubmatch(line); m != nil {
			offset, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			size, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			tables[heading] = append(tables[heading], row{offset, size, m[3]})
		}
	}
	return tables
}
