// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	softwareStamps = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE
	// With both, the kernel's stamp of a sent packet comes as well as the NIC's. Drivers
	// differ in whether they can be told to leave it out, and NICs lose stamps.
	hardwareStamps = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE |
		unix.SOF_TIMESTAMPING_OPT_TX_SWHW
	// numbered stamps come without the packet they are of.
	numbered = unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY
)

// options sets up a socket before it is bound. Only what the socket cannot do
// without is an error.
func (c *Conn) options(fd int, config Config) error {
	if config.Device != "" {
		if err := unix.BindToDevice(fd, config.Device); err != nil {
			return fmt.Errorf("bind to device %q: %w", config.Device, err)
		}
	}
	if err := c.hops(fd, config.TTL); err != nil {
		return err
	}
	// Beyond these the kernel drops and counts; less is not worth failing for.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	c.stamping(fd, config)
	return nil
}

func (c *Conn) hops(fd int, ttl uint8) error {
	if ttl == 0 {
		ttl = 255
	}
	level, send, receive := unix.SOL_IP, unix.IP_TTL, unix.IP_RECVTTL
	if c.v6 {
		level, send, receive = unix.SOL_IPV6, unix.IPV6_UNICAST_HOPS, unix.IPV6_RECVHOPLIMIT
	}
	if err := unix.SetsockoptInt(fd, level, send, int(ttl)); err != nil {
		return fmt.Errorf("set TTL %d: %w", ttl, err)
	}
	if err := unix.SetsockoptInt(fd, level, receive, 1); err != nil {
		return fmt.Errorf("ask for received TTL: %w", err)
	}
	return nil
}

// stamping switches on the best stamps there are, and notes why not better ones.
func (c *Conn) stamping(fd int, config Config) {
	if config.NoKernelStamps {
		c.fallback = "kernel stamps are switched off"
		return
	}
	c.flags = softwareStamps | numbered
	if config.Hardware {
		p, err := openPHC(fd, config.Device, c.pairs)
		if err != nil {
			c.fallback = fmt.Sprintf("no hardware stamps: %v", err)
		} else {
			c.phc = p
			c.flags |= hardwareStamps
		}
	}
	if err := c.count(fd); err != nil {
		c.fallback = fmt.Sprintf("no kernel stamps: %v", os.NewSyscallError("setsockopt SO_TIMESTAMPING", err))
		return
	}
	c.kernel = true
}

// count switches stamps on, so that the kernel numbers packets from 0. They are never
// off in between: one that Run fetches then would come without its time.
func (c *Conn) count(fd int) error {
	name := unix.SO_TIMESTAMPING_NEW
	unnumbered := c.flags &^ unix.SOF_TIMESTAMPING_OPT_ID
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, name, unnumbered) != nil { // a kernel before 5.1
		name = unix.SO_TIMESTAMPING_OLD
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, name, unnumbered); err != nil {
			return err
		}
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, name, c.flags)
}
