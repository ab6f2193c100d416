// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// fakePHC is a NIC's clock beside a made clock; broken makes it unreadable.
type fakePHC struct {
	host   *made
	phc    []segment // of raw
	broken bool
}

// sample takes 2 to 3 µs, as a reading over PCIe does.
func (f *fakePHC) sample() ([][3]int64, error) {
	if f.broken {
		return nil, errors.New("device is gone")
	}
	var samples [][3]int64
	for range phcSamples {
		before := f.host.now
		f.host.now += 2*us + f.host.rng.Int64N(us)
		at := before + f.host.rng.Int64N(f.host.now-before+1)
		samples = append(samples, [3]int64{read(f.host.realtime, before), read(f.phc, at), read(f.host.realtime, f.host.now)})
	}
	return samples, nil
}

func TestStampsOfAPHCContainTheTruth(t *testing.T) {
	// TAI is ahead of realtime, and the NIC's oscillator is not the host's.
	clock := newMade(1, []Change{{Rate: -13e-6}})
	fake := &fakePHC{host: clock, phc: *schedule(0, 1_700_000_037*s, []Change{{Rate: 25e-6}})}
	device := &PHC{host: newPairs(clock), sample: fake.sample}
	nic := &phc{device: device, pairs: newPairs(device)}
	// Host and PHC settle one after the other.
	for range 20 {
		clock.now += int64(ReadEvery)
		device.host.Read()
		nic.pairs.Read()
	}
	for i := range 200 {
		at := clock.now + int64(i)*us
		clock.now = at + 30*us
		device.host.Read()
		nic.pairs.Read()
		got := nic.carry(read(fake.phc, at))
		require.Equal(t, stamp.KindHardware, int(got.Kind))
		require.LessOrEqual(t, magnitude(got.Raw-at), int64(got.Width), "%+v", got)
		require.Less(t, got.Width, uint32(9*us), "readings are 1 to 1.75 µs to either side: one's, and two's twice for what hides in them")
		require.InDelta(t, read(clock.realtime, at), got.Unix, float64(got.Width)+1000)
	}

	fake.broken = true
	at := clock.now + ms
	clock.now = at + ms
	device.host.Read()
	nic.pairs.Read()
	assert.Equal(t, stamp.KindNone, int(nic.carry(read(fake.phc, at)).Kind), "nothing is known after the last reading")
}

func TestWhatANICMustOffer(t *testing.T) {
	all := unix.EthtoolTsInfo{
		So_timestamping: unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE,
		Tx_types:        1 << unix.HWTSTAMP_TX_ON,
		Rx_filters:      1 << unix.HWTSTAMP_FILTER_ALL,
	}
	assert.NoError(t, offers(&all))
	for name, change := range map[string]func(*unix.EthtoolTsInfo){
		"no clock":         func(i *unix.EthtoolTsInfo) { i.Phc_index = -1 },
		"software only":    func(i *unix.EthtoolTsInfo) { i.So_timestamping = softwareStamps },
		"nothing sent":     func(i *unix.EthtoolTsInfo) { i.Tx_types = 1 },
		"PTP packets only": func(i *unix.EthtoolTsInfo) { i.Rx_filters = 1 << unix.HWTSTAMP_FILTER_PTP_V2_EVENT },
	} {
		info := all
		change(&info)
		assert.Error(t, offers(&info), name)
	}
}

func TestHardwareThatIsMissingFallsBack(t *testing.T) {
	c, err := Listen(Config{Addr: loopback(false), Hardware: true})
	require.NoError(t, err)
	defer c.Close()
	assert.Contains(t, c.Fallback(), "no hardware stamps")
	assert.True(t, c.kernel)

	c, err = Listen(Config{Addr: loopback(false), Hardware: true, Device: "lo"})
	require.NoError(t, err)
	defer c.Close()
	assert.Contains(t, c.Fallback(), "no hardware stamps")

	_, err = Listen(Config{Addr: loopback(false), Device: "nothere"})
	require.ErrorContains(t, err, "nothere")
}

// stamped is what the error queue brings of a sent packet: the kernel's stamp or
// the NIC's.
func stamped(id uint32, software, hardware int64) message {
	var times []byte
	for _, ns := range []int64{software, 0, hardware} {
		times = binary.NativeEndian.AppendUint64(times, uint64(ns/s))
		times = binary.NativeEndian.AppendUint64(times, uint64(ns%s))
	}
	extended := binary.NativeEndian.AppendUint32(nil, uint32(unix.ENOMSG))
	extended = append(extended, unix.SO_EE_ORIGIN_TIMESTAMPING, 0, 0, 0)
	extended = binary.NativeEndian.AppendUint32(extended, scmTstampSnd)
	extended = binary.NativeEndian.AppendUint32(extended, id)
	var b []byte
	add := func(level, kind int, data []byte) {
		m := make([]byte, unix.CmsgSpace(len(data)))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&m[0]))
		h.Level, h.Type = int32(level), int32(kind)
		h.SetLen(unix.CmsgLen(len(data)))
		copy(m[unix.CmsgLen(0):], data)
		b = append(b, m...)
	}
	add(unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times)
	add(unix.SOL_IP, unix.IP_RECVERR, extended)
	return message{control: b}
}

func TestTheNICsStampOfASentPacketCounts(t *testing.T) {
	clock := newMade(1, nil)
	fake := &fakePHC{host: clock, phc: *schedule(0, 1_700_000_037*s, nil)}
	device := &PHC{host: newPairs(clock), sample: fake.sample}
	c := &Conn{kernel: true, choose: true, pairs: device.host, phc: &phc{device: device, pairs: newPairs(device)}, start: time.Now()}
	later := func(d int64) {
		clock.now += d
		device.host.Read()
		c.phc.pairs.Read()
	}
	for range 20 {
		later(int64(ReadEvery))
	}
	at := clock.now
	later(ms)
	kernel, nic := read(clock.realtime, at), read(fake.phc, at+10*us)
	h := &recorder{}
	for id := range uint32(5) {
		c.pending.put(waiting{id: id, before: kernel - us})
	}
	c.next = 5
	for _, m := range []message{
		stamped(0, kernel, 0), stamped(0, 0, nic), // as the kernel orders them
		stamped(1, 0, nic), stamped(1, kernel, 0), // overtaken
		stamped(2, kernel, 0),                             // the NIC lost its own
		stamped(3, kernel, 0), stamped(3, 0, nic-3_600*s), // of no time that is known
		stamped(9, kernel, 0), stamped(10, 0, nic), // of nobody
	} {
		c.sent(m, h)
	}
	require.Equal(t, stamp.KindHardware, int(h.sent[0].Kind), "the kernel's is taken before the NIC is told of the packet")
	assert.LessOrEqual(t, magnitude(h.sent[0].Raw-at-10*us), int64(h.sent[0].Width))
	assert.Equal(t, stamp.KindHardware, int(h.sent[1].Kind))
	assert.NotContains(t, h.sent, uint32(2), "the NIC's may still come")
	assert.Equal(t, stamp.KindKernel, int(h.sent[3].Kind))

	c.start = time.Now().Add(-time.Minute)
	c.giveUp(h)
	assert.Equal(t, stamp.KindKernel, int(h.sent[2].Kind), "better than the program's")
	assert.Equal(t, stamp.KindUser, int(h.sent[4].Kind))
	assert.Zero(t, h.twice)
	got := c.Counters()
	assert.Equal(t, [4]int64{stamp.KindUser: 1, stamp.KindKernel: 2, stamp.KindHardware: 2}, got.SentStamps)
	assert.Equal(t, int64(2), got.UnknownStamps)
	assert.Equal(t, int64(2), got.MissingStamps)
}
