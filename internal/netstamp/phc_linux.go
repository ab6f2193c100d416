// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// phcSamples is how often one reading of a PHC is tried; the narrowest is kept.
const phcSamples = 5

// PHC is a NIC's clock. It is a Clock whose Realtime is the PHC, so that Pairs
// follows it, and makes edges from raw to it.
type PHC struct {
	host   *Pairs // realtime to raw
	sample func() ([][3]int64, error)
	closer func() error

	mu   sync.Mutex
	last Pair
	err  error
}

// OpenPHC opens /dev/ptp<index>. Host carries the kernel's readings over to raw.
func OpenPHC(index int, host *Pairs) (*PHC, error) {
	f, err := os.OpenFile(fmt.Sprintf("/dev/ptp%d", index), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open PHC: %w", err)
	}
	p := &PHC{host: host, closer: f.Close, sample: func() ([][3]int64, error) { return sampleFile(f) }}
	p.Pair()
	if p.err != nil {
		return nil, errors.Join(p.err, f.Close())
	}
	return p, nil
}

// sampleFile reads realtime, the PHC, and realtime again, some times.
func sampleFile(f *os.File) (samples [][3]int64, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var o *unix.PtpSysOffsetExtended
	if e := raw.Control(func(fd uintptr) { o, err = unix.IoctlPtpSysOffsetExtended(int(fd), phcSamples) }); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, fmt.Errorf("read PHC: %w", err)
	}
	for _, s := range o.Ts[:min(int(o.Samples), len(o.Ts))] {
		samples = append(samples, [3]int64{phcTime(s[0]), phcTime(s[1]), phcTime(s[2])})
	}
	return samples, nil
}

func phcTime(t unix.PtpClockTime) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// Kernel implements Clock: the NIC's stamps are of the PHC as it is.
func (p *PHC) Kernel(phc int64) int64 { return phc }

// Pair implements Clock: raw and the PHC, read together. Where the PHC cannot be
// read, it is the last reading again or, where there is none, the zero Pair; Pairs
// takes neither for a reading.
func (p *PHC) Pair() Pair {
	p.mu.Lock()
	defer p.mu.Unlock()
	samples, err := p.sample()
	if err != nil {
		p.err = err
		return p.last
	}
	p.host.Read()
	best, ok := Pair{}, false
	for _, s := range samples {
		if pair, known := p.carry(s); known && (!ok || pair.Width < best.Width) {
			best, ok = pair, true
		}
	}
	if ok {
		p.last = best
	}
	return p.last
}

// carry brings a sample's readings of realtime over to raw.
func (p *PHC) carry(sample [3]int64) (Pair, bool) {
	before, early, ok := p.host.Carry(p.host.clock.Kernel(sample[0]))
	if !ok {
		return Pair{}, false
	}
	after, late, ok := p.host.Carry(p.host.clock.Kernel(sample[2]))
	if !ok {
		return Pair{}, false
	}
	return between(before-int64(early), sample[1], after+int64(late)), true
}

// Close closes the device.
func (p *PHC) Close() error { return p.closer() }

// phc carries a NIC's stamps over to raw.
type phc struct {
	device *PHC
	pairs  *Pairs
}

func (p *phc) carry(hardware int64) stamp.Stamp {
	raw, width, ok := p.pairs.Carry(hardware)
	if !ok {
		return stamp.Stamp{}
	}
	return stamp.Stamp{Raw: raw, Unix: p.device.host.Realtime(raw), Kind: stamp.KindHardware, Width: width}
}

// openPHC switches on a NIC's stamps and opens its clock.
func openPHC(fd int, device string, host *Pairs) (*phc, error) {
	if device == "" {
		return nil, errors.New("got no device; want the name of a NIC")
	}
	info, err := unix.IoctlGetEthtoolTsInfo(fd, device)
	if err != nil {
		return nil, fmt.Errorf("ask %q what it stamps: %w", device, err)
	}
	if err := offers(info); err != nil {
		return nil, fmt.Errorf("%q: %w", device, err)
	}
	set := unix.HwTstampConfig{Tx_type: unix.HWTSTAMP_TX_ON, Rx_filter: unix.HWTSTAMP_FILTER_ALL}
	if err := unix.IoctlSetHwTstamp(fd, device, &set); err != nil {
		return nil, fmt.Errorf("switch on stamps of %q: %w", device, err)
	}
	p, err := OpenPHC(int(info.Phc_index), host)
	if err != nil {
		return nil, err
	}
	return &phc{device: p, pairs: NewPairs(p)}, nil
}

// offers says what is missing for stamps of all packets, both ways.
func offers(info *unix.EthtoolTsInfo) error {
	const want = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
	switch {
	case info.Phc_index < 0:
		return errors.New("has no clock")
	case info.So_timestamping&want != want:
		return fmt.Errorf("got capabilities %#x; want %#x", info.So_timestamping, want)
	case info.Tx_types&(1<<unix.HWTSTAMP_TX_ON) == 0:
		return errors.New("stamps no sent packets")
	case info.Rx_filters&(1<<unix.HWTSTAMP_FILTER_ALL) == 0:
		return errors.New("stamps PTP packets only")
	}
	return nil
}
