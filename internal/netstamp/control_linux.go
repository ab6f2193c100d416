// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"encoding/binary"
	"math"

	"golang.org/x/sys/unix"
)

// control is what the control messages of one packet say.
type control struct {
	software, hardware int64 // ns; 0 none
	transmit           bool  // a transmit stamp, of the packet id
	id                 uint32
	ttl                uint8
	overflow           uint32 // packets dropped since the socket was opened
	malformed          bool
}

const (
	timespecs = 3 // of SCM_TIMESTAMPING: software, unused, hardware
	intSize   = 4
)

// parseControl reads control messages.
func parseControl(b []byte) control {
	var c control
	for len(b) > 0 {
		if len(b) < unix.SizeofCmsghdr { // ParseOneSocketControlMessage reads a header first
			c.malformed = true
			return c
		}
		h, data, rest, err := unix.ParseOneSocketControlMessage(b)
		if err != nil {
			c.malformed = true
			return c
		}
		if !c.read(int(h.Level), int(h.Type), data) {
			c.malformed = true
		}
		b = rest
	}
	return c
}

// read takes over one control message; false if it is not as it must be.
func (c *control) read(level, kind int, data []byte) bool {
	switch level {
	case unix.SOL_SOCKET:
		switch kind {
		case unix.SO_TIMESTAMPING_NEW, unix.SO_TIMESTAMPING_OLD:
			return c.times(data)
		case unix.SO_RXQ_OVFL:
			return c.number(data, &c.overflow)
		}
	case unix.SOL_IP:
		switch kind {
		case unix.IP_TTL:
			return c.hops(data)
		case unix.IP_RECVERR:
			return c.extended(data)
		}
	case unix.SOL_IPV6:
		switch kind {
		case unix.IPV6_HOPLIMIT:
			return c.hops(data)
		case unix.IPV6_RECVERR:
			return c.extended(data)
		}
	}
	return true
}

// times reads three times of seconds and ns, of 8 bytes or, from kernels without
// SO_TIMESTAMPING_NEW on 32-bit systems, of 4.
func (c *control) times(data []byte) bool {
	size := len(data) / (2 * timespecs)
	if size != 4 && size != 8 || len(data) != size*2*timespecs {
		return false
	}
	at := func(i int) int64 {
		seconds, ns := word(data[2*i*size:], size), word(data[(2*i+1)*size:], size)
		if seconds < 0 || seconds > maxSeconds || ns < 0 || ns >= 1e9 {
			return -1
		}
		return seconds*1e9 + ns
	}
	software, hardware := at(0), at(2)
	if software < 0 || hardware < 0 {
		return false
	}
	c.software, c.hardware = software, hardware
	return true
}

// maxSeconds fit int64 in ns: the year 2262.
const maxSeconds = math.MaxInt64/1_000_000_000 - 1

func word(b []byte, size int) int64 {
	if size == 4 {
		return int64(int32(binary.NativeEndian.Uint32(b)))
	}
	return int64(binary.NativeEndian.Uint64(b))
}

func (c *control) number(data []byte, n *uint32) bool {
	if len(data) < intSize {
		return false
	}
	*n = binary.NativeEndian.Uint32(data)
	return true
}

func (c *control) hops(data []byte) bool {
	var n uint32
	if !c.number(data, &n) || n > 255 {
		return false
	}
	c.ttl = uint8(n)
	return true
}

// extended reads a struct sock_extended_err. Only what the stamping itself wrote
// is a transmit stamp, and of these only that of leaving for the device; the rest
// are errors, of ICMP for one.
func (c *control) extended(data []byte) bool {
	const errno, origin, info, id, size = 0, 4, 8, 12, 16
	if len(data) < size {
		return false
	}
	c.transmit = binary.NativeEndian.Uint32(data[errno:]) == uint32(unix.ENOMSG) &&
		data[origin] == unix.SO_EE_ORIGIN_TIMESTAMPING &&
		binary.NativeEndian.Uint32(data[info:]) == scmTstampSnd
	c.id = binary.NativeEndian.Uint32(data[id:])
	return true
}

// scmTstampSnd is SCM_TSTAMP_SND of <linux/errqueue.h>.
const scmTstampSnd = 0
