// SPDX-License-Identifier: Apache-2.0

package clockstate

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// answer is a response to a question, with the data that it bears.
func answer(id uint16, data ...byte) []byte {
	b := append(ptpRequest(0, 1, 7, id), data...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	b[46] = 2 // response
	binary.BigEndian.PutUint16(b[50:], uint16(2+len(data)))
	return b
}

// timeStatus is put together from linuxptp's structure: 1,500 ns ahead at 5 s.
func timeStatus() []byte {
	data := make([]byte, 50)
	binary.BigEndian.PutUint64(data, 1500)
	binary.BigEndian.PutUint64(data[8:], 5_000_000_000)
	data[41] = 1                                             // present
	copy(data[42:], []byte{0xaa, 1, 2, 0xff, 0xfe, 3, 4, 5}) // grandmaster
	return data
}

func status(t *testing.T) PTPStatus {
	t.Helper()
	var s PTPStatus
	require.NoError(t, s.decode(idTimeStatusNP, timeStatus()))
	require.NoError(t, s.decode(idCurrentDataSet, []byte{
		0, 2, // steps
		0, 0, 0, 0, 0x05, 0xdc, 0, 0, // offset: 1500 ns of 2^16
		0, 0, 0, 0, 0x01, 0x2c, 0x80, 0, // path delay: 300.5 ns
	}))
	require.NoError(t, s.decode(idPortPropertiesNP, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9, 0, 4, 'e', 't', 'h', '0', 0}))
	return s
}

func TestStatusIsDecodedByField(t *testing.T) {
	s := status(t)
	assert.Equal(t, PTPStatus{
		GM: [8]byte{0xaa, 1, 2, 0xff, 0xfe, 3, 4, 5}, Present: true, Offset: 1500, Ingress: 5_000_000_000,
		PathDelay: 300, StepsRemoved: 2, Follows: true, Interface: "eth0",
	}, s)
	edge, ok := s.Edge("host:a/1/realtime", 5_500_000_000, 1_000_000_000)
	require.True(t, ok)
	assert.Equal(t, model.ClockEdge{
		Src: "host:a/1/realtime", Dst: "utc:ptp/aa0102fffe030405", At: 5_000_000_000,
		Lower: model.NoLower, Upper: model.NoUpper, Offset: -1500, Sigma: 300,
		Samples: 1, Source: model.EdgePTP, Stamps: model.StampKernel,
	}, edge)
}

func TestPortsThatFollowNobody(t *testing.T) {
	var s PTPStatus
	for state := range uint8(16) {
		if state != 8 && state != 9 { // uncalibrated, slave
			require.NoError(t, s.decode(idPortPropertiesNP, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, state, 1, 1, 'x'}))
		}
	}
	assert.False(t, s.Follows)
}

func TestStatusThatSaysNothing(t *testing.T) {
	for name, change := range map[string]func(*PTPStatus){
		"is the master":  func(s *PTPStatus) { s.Present = false },
		"follows nobody": func(s *PTPStatus) { s.Follows = false },
		"long ago":       func(s *PTPStatus) { s.Ingress = 3_999_999_999 },
		"in the future":  func(s *PTPStatus) { s.Ingress = 5_000_000_001 },
		"negative delay": func(s *PTPStatus) { s.PathDelay = -1 },
	} {
		s := status(t)
		change(&s)
		_, ok := s.Edge("host:a/1/realtime", 5_000_000_000, 1_000_000_000)
		assert.False(t, ok, name)
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	whole := answer(idTimeStatusNP, timeStatus()...)
	for name, change := range map[string]func([]byte) []byte{
		"empty":         func([]byte) []byte { return nil },
		"short":         func(b []byte) []byte { return b[:53] },
		"truncated":     func(b []byte) []byte { return b[:len(b)-1] },
		"other type":    func(b []byte) []byte { b[0] = 0; return b },
		"other version": func(b []byte) []byte { b[1] = 1; return b },
		"a question":    func(b []byte) []byte { b[46] = 0; return b },
		"an error":      func(b []byte) []byte { b[49] = 2; return b },
		"unknown TLV":   func(b []byte) []byte { b[49] = 9; return b },
		"no id":         func(b []byte) []byte { b[50], b[51] = 0, 1; return b },
	} {
		_, _, _, err := decodeManagement(change(append([]byte(nil), whole...)))
		assert.ErrorContains(t, err, "want", name)
	}
	var s PTPStatus
	assert.ErrorContains(t, s.decode(idTimeStatusNP, timeStatus()[:49]), "want 50")
	assert.ErrorContains(t, s.decode(idPortPropertiesNP, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9, 0, 2, 'e'}), "want 1 or fewer")
}

func FuzzManagement(f *testing.F) {
	f.Add(answer(idTimeStatusNP, timeStatus()...))
	f.Add(answer(idPortPropertiesNP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9, 0, 1, 'x'))
	f.Add(answer(idCurrentDataSet, make([]byte, 18)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, id, data, err := decodeManagement(b)
		if err != nil {
			return
		}
		var s PTPStatus
		if s.decode(id, data) == nil {
			s.Edge("a", s.Ingress, 0)
		}
		assert.LessOrEqual(t, len(s.Interface), len(b))
	})
}
