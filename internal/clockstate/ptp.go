// SPDX-License-Identifier: Apache-2.0

package clockstate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// PTPSocket is where ptp4l listens unless it is told otherwise.
const PTPSocket = "/var/run/ptp4l"

// IEEE 1588 management messages, and those of linuxptp (0xC...).
const (
	ptpHeader     = 34
	ptpManagement = 0x0d // message type
	ptpPrefix     = ptpHeader + 14
	ptpResponse   = 2 // action; 0 is get

	tlvManagement = 1
	tlvError      = 2
	tlvPrefix     = 6 // type, length, id

	idCurrentDataSet   = 0x2001
	idTimeStatusNP     = 0xC000
	idPortPropertiesNP = 0xC004

	lengthCurrentDataSet = 18
	lengthTimeStatusNP   = 50
	// lengthPortProperties is without the interface's name.
	lengthPortProperties = 13
)

// States of a port in which ptp4l takes offsets from a master.
const (
	portUncalibrated = 8 // and for ever where ptp4l runs free
	portSlave        = 9
)

// PTPStatus is what ptp4l says of the clock that it disciplines, or would.
type PTPStatus struct {
	GM      [8]byte // identity of the grandmaster
	Present bool    // there is one, and it is another clock
	// Offset is the clock's reading less the master's in ns, when the clock read
	// Ingress.
	Offset, Ingress int64
	PathDelay       int64 // ns, one way, filtered
	StepsRemoved    uint16

	// Of the port that listens to the master.
	Follows   bool // there is one
	Hardware  bool // the clock is the NIC's, not the host's real-time clock
	Interface string
}

// ReadPTP asks ptp4l at a Unix socket, in a domain (0 unless told otherwise).
func ReadPTP(ctx context.Context, address string, domain uint8) (PTPStatus, error) {
	// Every port answers by itself, and nothing says how many there are; but answers
	// come in the order of the questions, so that the last one's ends them.
	questions := []uint16{idCurrentDataSet, idPortPropertiesNP, idTimeStatusNP}
	first, port := uint16(rand.Uint32()), uint16(rand.Uint32())
	requests := make([][]byte, len(questions))
	for i, id := range questions {
		requests[i] = ptpRequest(domain, port, first+uint16(i), id)
	}
	var s PTPStatus
	err := ask(ctx, address, requests, func(reply []byte) (bool, error) {
		sequence, id, data, err := decodeManagement(reply)
		if n := sequence - first; err != nil || int(n) >= len(questions) || questions[n] != id {
			return false, err
		}
		return id == idTimeStatusNP, s.decode(id, data)
	})
	if err != nil {
		return PTPStatus{}, fmt.Errorf("read ptp4l: %w", err)
	}
	return s, nil
}

// ptpRequest asks all ports for a management id.
func ptpRequest(domain uint8, port, sequence, id uint16) []byte {
	be := binary.BigEndian
	b := make([]byte, ptpPrefix+tlvPrefix)
	b[0], b[1] = ptpManagement, 2 // version
	be.PutUint16(b[2:], uint16(len(b)))
	b[4] = domain
	be.PutUint16(b[28:], port) // of our identity
	be.PutUint16(b[30:], sequence)
	b[32], b[33] = 4, 0x7f // control field and interval of management messages
	for i := ptpHeader; i < ptpHeader+10; i++ {
		b[i] = 0xff // every clock, every port
	}
	be.PutUint16(b[ptpPrefix:], tlvManagement)
	be.PutUint16(b[ptpPrefix+2:], 2) // the id alone
	be.PutUint16(b[ptpPrefix+4:], id)
	return b
}

func decodeManagement(b []byte) (sequence, id uint16, data []byte, err error) {
	be := binary.BigEndian
	if len(b) < ptpPrefix+tlvPrefix {
		return 0, 0, nil, fmt.Errorf("decode message: got %d bytes; want %d or more", len(b), ptpPrefix+tlvPrefix)
	}
	if kind, version := b[0]&0x0f, b[1]&0x0f; kind != ptpManagement || version != 2 {
		return 0, 0, nil, fmt.Errorf("decode message: got type %d, version %d; want %d, 2", kind, version, ptpManagement)
	}
	if action := b[ptpPrefix-2] & 0x0f; action != ptpResponse {
		return 0, 0, nil, fmt.Errorf("decode message: got action %d; want %d", action, ptpResponse)
	}
	tlv := b[ptpPrefix:]
	length := int(be.Uint16(tlv[2:]))
	if length < 2 || 4+length > len(tlv) {
		return 0, 0, nil, fmt.Errorf("decode message: got a TLV of %d bytes; want 2 to %d", length, len(tlv)-4)
	}
	switch kind := be.Uint16(tlv); kind {
	case tlvManagement:
		return be.Uint16(b[30:]), be.Uint16(tlv[4:]), tlv[tlvPrefix : 4+length], nil
	case tlvError:
		return 0, 0, nil, fmt.Errorf("decode message: got error status %#x; want an answer", be.Uint16(tlv[4:]))
	default:
		return 0, 0, nil, fmt.Errorf("decode message: got TLV %#x; want %#x", kind, tlvManagement)
	}
}

func (s *PTPStatus) decode(id uint16, data []byte) error {
	be := binary.BigEndian
	want := map[uint16]int{
		idCurrentDataSet: lengthCurrentDataSet, idPortPropertiesNP: lengthPortProperties, idTimeStatusNP: lengthTimeStatusNP,
	}[id]
	if len(data) < want {
		return fmt.Errorf("decode %#x: got %d bytes; want %d", id, len(data), want)
	}
	switch id {
	case idCurrentDataSet:
		s.StepsRemoved = be.Uint16(data)
		s.PathDelay = int64(be.Uint64(data[10:])) >> 16 // of 2^-16 ns
	case idTimeStatusNP:
		s.Offset, s.Ingress = int64(be.Uint64(data)), int64(be.Uint64(data[8:]))
		s.Present = be.Uint32(data[38:]) != 0
		s.GM = [8]byte(data[42:])
	case idPortPropertiesNP:
		return s.port(data)
	}
	return nil
}

func (s *PTPStatus) port(data []byte) error {
	state, stamps, length := data[10], data[11], int(data[12])
	if state != portSlave && state != portUncalibrated {
		return nil
	}
	if length > len(data)-lengthPortProperties {
		return fmt.Errorf("decode port: got a name of %d bytes; want %d or fewer", length, len(data)-lengthPortProperties)
	}
	s.Follows, s.Hardware = true, stamps != 0 // 0 is software
	s.Interface = string(data[lengthPortProperties:][:length])
	return nil
}

// Edge is what the status says of a clock: the host's real-time clock, or the NIC's
// where Hardware; false where ptp4l follows nothing, or took its last offset longer
// than age ns before the clock's reading now.
func (s *PTPStatus) Edge(clock string, now, age int64) (model.ClockEdge, bool) {
	if !s.Present || !s.Follows || s.Ingress < now-age || s.Ingress > now ||
		s.Offset == math.MinInt64 || s.PathDelay < 0 {
		return model.ClockEdge{}, false
	}
	stamps := model.StampKernel
	if s.Hardware {
		stamps = model.StampHardware
	}
	return model.ClockEdge{
		Src: clock, Dst: fmt.Sprintf("utc:ptp/%x", s.GM), At: s.Ingress,
		Lower: model.NoLower, Upper: model.NoUpper, Offset: -s.Offset,
		// One offset has no spread. The path delay is what all queues and asymmetries
		// of an undisturbed network are a part of.
		Sigma:   math.Max(100, float64(s.PathDelay)),
		Samples: 1, Source: model.EdgePTP, Stamps: stamps,
	}, true
}
