// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// sending is the time in which a packet was sent.
type sending struct{ after, before Pair }

// sendTimed sends and notes when.
func sendTimed(t *testing.T, c *Conn, b []byte, to netip.AddrPort) (uint32, sending) {
	t.Helper()
	after := c.Pairs().Read()
	id, err := c.Send(b, to)
	require.NoError(t, err)
	return id, sending{after, c.Pairs().Read()}
}

// contains says whether the packet can have left at s. Loopback stamps packets
// while they are sent.
func (w sending) contains(s stamp.Stamp) bool {
	return w.after.Raw-w.after.Width <= s.Raw+int64(s.Width) && s.Raw-int64(s.Width) <= w.before.Raw+w.before.Width
}

func setOption(t *testing.T, c *Conn, level, name, value int) {
	t.Helper()
	var err error
	require.NoError(t, c.raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, name, value) }))
	require.NoError(t, err)
}

// closedPort is a port at which nobody listens.
func closedPort(t *testing.T) netip.AddrPort {
	t.Helper()
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer u.Close()
	return u.LocalAddr().(*net.UDPAddr).AddrPort()
}

// eachStampIsOfItsPacket sends through errors and checks every stamp against the
// time at which that packet was sent.
func eachStampIsOfItsPacket(t *testing.T, c *Conn, h *recorder, to netip.AddrPort, between func(i int)) {
	t.Helper()
	sent := map[uint32]sending{}
	for i := range 300 {
		between(i)
		id, w := sendTimed(t, c, []byte("probe"), to)
		_, twice := sent[id]
		require.False(t, twice, "number %d was given twice", id)
		sent[id] = w
		time.Sleep(50 * time.Microsecond) // so that a neighbour's stamp shows
	}
	require.Eventually(t, func() bool { n, _ := h.counts(); return n == len(sent) }, patience, time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	kernel := 0
	for id, w := range sent {
		s, ok := h.sent[id]
		require.True(t, ok, "packet %d has no stamp", id)
		if s.Kind == stamp.KindKernel {
			kernel++
		}
		require.True(t, w.contains(s), "packet %d was sent within %+v, stamped %+v", id, w, s)
	}
	assert.Zero(t, h.twice)
	if c.choose {
		assert.Equal(t, len(sent), kernel)
	} else { // stamps from before the last error but one are lost if they are fetched after it
		assert.Greater(t, kernel, len(sent)/2)
	}
}

func TestStampsAreOfTheirPackets(t *testing.T) {
	unreachable := netip.MustParseAddrPort("255.255.255.255:9") // refused without SO_BROADCAST
	for name, setup := range map[string]func(c *Conn){
		"numbers of ours":           func(*Conn) {},
		"numbers of ours, wrapping": func(c *Conn) { c.next, c.pending.oldest = math.MaxUint32-100, math.MaxUint32-100 },
		"numbers of the kernel":     func(c *Conn) { c.choose = false },
		"numbers of the kernel, wrapping": func(c *Conn) {
			c.choose, c.epochs[0].base = false, math.MaxUint32-100
			c.next, c.pending.oldest = math.MaxUint32-100, math.MaxUint32-100
		},
		"numbers of the kernel, peer gone": func(c *Conn) { c.choose = false; setOption(t, c, unix.SOL_IP, unix.IP_RECVERR, 1) },
		"numbers of ours, peer gone":       func(c *Conn) { setOption(t, c, unix.SOL_IP, unix.IP_RECVERR, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			h := &recorder{}
			c := open(t, Config{Addr: loopback(false)}, h)
			to := open(t, Config{Addr: loopback(false)}, &recorder{}).LocalAddr()
			setup(c)
			setOption(t, c, unix.SOL_SOCKET, unix.SO_BROADCAST, 0)
			gone := closedPort(t)
			others := 0
			eachStampIsOfItsPacket(t, c, h, to, func(i int) {
				if i%7 == 3 {
					_, err := c.Send([]byte("refused"), unreachable)
					require.Error(t, err)
				}
				if i%11 == 5 && strings.HasSuffix(name, "gone") {
					// Its stamp comes as well; the ICMP error must not be taken for one.
					if id, err := c.Send([]byte("nobody"), gone); err == nil {
						others++
						require.Eventually(t, func() bool { h.mu.Lock(); defer h.mu.Unlock(); _, ok := h.sent[id]; delete(h.sent, id); return ok }, patience, time.Millisecond)
					}
				}
			})
			if strings.HasSuffix(name, "gone") {
				assert.Positive(t, others)
				assert.Positive(t, c.Counters().PeerErrors)
			}
			assert.Positive(t, c.Counters().SendErrors)
			assert.Equal(t, c.choose, c.Counters().Resets == 0)
		})
	}
}

func TestStampsOfTheProgram(t *testing.T) {
	a, b := &recorder{}, &recorder{}
	from := open(t, Config{Addr: loopback(false), NoKernelStamps: true}, a)
	to := open(t, Config{Addr: loopback(false), NoKernelStamps: true}, b)
	require.NotEmpty(t, from.Fallback())
	const packets = 50
	for range packets {
		_, err := from.Send([]byte("probe"), to.LocalAddr())
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		sent, _ := a.counts()
		_, received := b.counts()
		return sent == packets && received == packets
	}, patience, time.Millisecond)
	for i, r := range b.received {
		assert.Equal(t, stamp.KindUser, int(r.Kind))
		s := a.sent[uint32(i)]
		assert.Equal(t, stamp.KindUser, int(s.Kind))
		assert.Less(t, s.Raw-int64(s.Width), r.Raw+int64(r.Width))
	}
	assert.Zero(t, from.Counters().MissingStamps)
}

func TestAMissingStampIsReplacedByTheProgram(t *testing.T) {
	h := &recorder{}
	c := open(t, Config{Addr: loopback(false)}, h)
	// As a driver that stamps nothing: the kernel is never asked.
	setOption(t, c, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, unix.SOF_TIMESTAMPING_OPT_ID)
	id, w := sendTimed(t, c, []byte("probe"), closedPort(t))
	require.Eventually(t, func() bool { n, _ := h.counts(); return n == 1 }, patience, time.Millisecond)
	assert.Equal(t, stamp.KindUser, int(h.sent[id].Kind))
	assert.True(t, w.contains(h.sent[id]))
	assert.Equal(t, int64(1), c.Counters().MissingStamps)
}

func TestWhatIsTooLongIsDropped(t *testing.T) {
	h := &recorder{}
	c := open(t, Config{Addr: loopback(false)}, h)
	u, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(c.LocalAddr()))
	require.NoError(t, err)
	defer u.Close()
	for _, size := range []int{MaxPacket + 1, MaxPacket, 60_000, 0, 1} {
		_, err = u.Write(make([]byte, size))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { _, n := h.counts(); return n == 3 }, patience, time.Millisecond)
	assert.Equal(t, []int{MaxPacket, 0, 1}, []int{len(h.received[0].data), len(h.received[1].data), len(h.received[2].data)})
	assert.Equal(t, int64(2), c.Counters().Truncated)
}

func TestSendRefuses(t *testing.T) {
	c := open(t, Config{Addr: loopback(false)}, &recorder{})
	for name, f := range map[string]func() error{
		"nothing":      func() error { _, err := c.Send(nil, c.LocalAddr()); return err },
		"too much":     func() error { _, err := c.Send(make([]byte, MaxPacket+1), c.LocalAddr()); return err },
		"port 0":       func() error { _, err := c.Send([]byte("x"), netip.MustParseAddrPort("127.0.0.1:0")); return err },
		"other family": func() error { _, err := c.Send([]byte("x"), netip.MustParseAddrPort("[::1]:9")); return err },
		"no address":   func() error { _, err := c.Send([]byte("x"), netip.AddrPort{}); return err },
	} {
		assert.Error(t, f(), name)
	}
	assert.Equal(t, int64(5), c.Counters().SendErrors)
	assert.Zero(t, c.Counters().PacketsSent)
}

func TestCloseEndsRunUnderAFlood(t *testing.T) {
	for range 20 {
		c, err := Listen(Config{Addr: loopback(false)})
		require.NoError(t, err)
		to := c.LocalAddr()
		h := &recorder{onPacket: func(data []byte, from netip.AddrPort) { _, _ = c.Send(data, from) }} // for ever
		done := make(chan error, 1)
		go func() { done <- c.Run(h) }()
		var senders sync.WaitGroup
		for range 2 {
			senders.Go(func() {
				for {
					if _, err := c.Send([]byte("flood"), to); errors.Is(err, ErrClosed) {
						return
					}
				}
			})
		}
		require.Eventually(t, func() bool { return c.Counters().PacketsReceived > 10 }, patience, time.Millisecond)
		require.NoError(t, c.Close())
		require.NoError(t, c.Close())
		require.NoError(t, <-done)
		senders.Wait()
		_, err = c.Send([]byte("late"), to)
		require.ErrorIs(t, err, ErrClosed)
	}
}

func TestCloseEndsAnIdleRun(t *testing.T) {
	c, err := Listen(Config{Addr: loopback(false)})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- c.Run(&recorder{}) }()
	time.Sleep(10 * time.Millisecond)
	require.NoError(t, c.Close())
	require.NoError(t, <-done)
}

func TestStampsOfASkewedClock(t *testing.T) {
	now := time.Now().UnixNano()
	soon := now + 100*ms
	clock := NewSkewed(now, 5*s, now+3*s,
		[]Change{{At: now, Rate: 50e-6}, {At: soon, Rate: -450e-6}},
		[]Change{{At: now, Rate: -20e-6}, {At: soon + 50*ms, Rate: 480e-6}, {At: soon + 150*ms, Rate: 480e-6, Step: 100 * ms}})
	h := &recorder{}
	c := open(t, Config{Addr: loopback(false), Clock: clock}, h)
	for time.Now().UnixNano() < soon+400*ms {
		_, err := c.Send([]byte("probe"), c.LocalAddr())
		require.NoError(t, err)
		time.Sleep(200 * time.Microsecond)
	}
	require.NoError(t, c.Close())
	h.mu.Lock()
	defer h.mu.Unlock()
	checked := 0
	check := func(s stamp.Stamp) {
		if s.Kind == stamp.KindNone {
			return
		}
		at, ok := clock.TrueOfRealtime(s.Unix)
		require.True(t, ok)
		require.LessOrEqual(t, magnitude(clock.Raw(at)-s.Raw), int64(s.Width)+1)
		checked++
	}
	for _, r := range h.received {
		check(r.Stamp)
	}
	for _, s := range h.sent {
		check(s)
	}
	assert.Greater(t, checked, 100)
	assert.Positive(t, c.Pairs().Counters().Events)
}

func TestSendAllocatesNothing(t *testing.T) {
	c := open(t, Config{Addr: loopback(false)}, &recorder{})
	b, to := []byte("probe"), closedPort(t)
	assert.Zero(t, testing.AllocsPerRun(200, func() { _, _ = c.Send(b, to) }))
}

func FuzzParseControl(f *testing.F) {
	times := make([]byte, unix.CmsgSpace(48))
	h := times[:unix.CmsgLen(0)]
	binary.NativeEndian.PutUint64(h, uint64(unix.CmsgLen(48)))
	binary.NativeEndian.PutUint32(h[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(h[12:], unix.SO_TIMESTAMPING_NEW)
	binary.NativeEndian.PutUint64(times[16:], 1_700_000_000)
	binary.NativeEndian.PutUint64(times[24:], 999_999_999)
	f.Add(times)
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := parseControl(b)
		if c.software < 0 || c.hardware < 0 {
			t.Fatalf("got times %d, %d; want none before 1970", c.software, c.hardware)
		}
	})
}

func TestParseControl(t *testing.T) {
	message := func(level, kind int, data []byte) []byte {
		b := make([]byte, unix.CmsgSpace(len(data)))
		binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(data))))
		binary.NativeEndian.PutUint32(b[8:], uint32(level))
		binary.NativeEndian.PutUint32(b[12:], uint32(kind))
		copy(b[unix.CmsgLen(0):], data)
		return b
	}
	times := func(values ...uint64) (b []byte) {
		for _, v := range values {
			b = binary.NativeEndian.AppendUint64(b, v)
		}
		return b
	}
	extended := func(errno unix.Errno, origin byte, info, id uint32) []byte {
		b := binary.NativeEndian.AppendUint32(nil, uint32(errno))
		b = append(b, origin, 0, 0, 0)
		b = binary.NativeEndian.AppendUint32(b, info)
		return binary.NativeEndian.AppendUint32(b, id)
	}
	const icmp, stamping = 2, 4 // SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_TIMESTAMPING
	for name, c := range map[string]struct {
		in   []byte
		want control
	}{
		"software":                {message(unix.SOL_SOCKET, 65, times(2, 3, 0, 0, 0, 0)), control{software: 2_000_000_003}},
		"hardware":                {message(unix.SOL_SOCKET, 37, times(0, 0, 0, 0, 7, 1)), control{hardware: 7_000_000_001}},
		"ns of a second and more": {message(unix.SOL_SOCKET, 65, times(2, 1e9, 0, 0, 0, 0)), control{malformed: true}},
		"before 1970":             {message(unix.SOL_SOCKET, 65, times(math.MaxUint64, 0, 0, 0, 0, 0)), control{malformed: true}},
		"after 2262":              {message(unix.SOL_SOCKET, 65, times(1<<40, 0, 0, 0, 0, 0)), control{malformed: true}},
		"two times":               {message(unix.SOL_SOCKET, 65, times(2, 3, 0, 0)), control{malformed: true}},
		"left for the device":     {message(unix.SOL_IP, 11, extended(unix.ENOMSG, stamping, 0, 9)), control{transmit: true, id: 9}},
		"IPv6":                    {message(unix.SOL_IPV6, 25, extended(unix.ENOMSG, stamping, 0, 9)), control{transmit: true, id: 9}},
		"entered the queue":       {message(unix.SOL_IP, 11, extended(unix.ENOMSG, stamping, 1, 9)), control{id: 9}},
		"port unreachable":        {message(unix.SOL_IP, 11, extended(unix.ECONNREFUSED, icmp, 0, 9)), control{id: 9}},
		"error cut off":           {message(unix.SOL_IP, 11, extended(unix.ENOMSG, stamping, 0, 9)[:15]), control{malformed: true}},
		"TTL":                     {message(unix.SOL_IP, 2, []byte{63, 0, 0, 0}), control{ttl: 63}},
		"TTL of 300":              {message(unix.SOL_IP, 2, []byte{44, 1, 0, 0}), control{malformed: true}},
		"hop limit":               {message(unix.SOL_IPV6, 52, []byte{64, 0, 0, 0}), control{ttl: 64}},
		"overflow":                {message(unix.SOL_SOCKET, 40, []byte{5, 0, 0, 0}), control{overflow: 5}},
		"others":                  {message(unix.SOL_SOCKET, 1, []byte{5}), control{}},
		"garbage":                 {[]byte{1, 2, 3}, control{malformed: true}},
	} {
		assert.Equal(t, c.want, parseControl(c.in), name)
	}
}

// network is two network namespaces joined by a veth pair, at 10.77.0.1 and .2.
type network [2]int

func newNetwork(t *testing.T, commands ...string) network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	id := os.Getpid()
	names := [2]string{fmt.Sprintf("lsa%d", id), fmt.Sprintf("lsb%d", id)}
	run := func(command string) {
		command = strings.NewReplacer("$A", names[0], "$B", names[1]).Replace(command)
		out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(command)...).CombinedOutput()
		if err != nil {
			t.Skipf("ip %s: %v: %s", command, err, out)
		}
	}
	for _, n := range names {
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n).Run() })
	}
	for _, c := range append([]string{
		"netns add $A", "netns add $B",
		"link add veth0 netns $A type veth peer name veth0 netns $B",
		"-n $A addr add 10.77.0.1/24 dev veth0", "-n $B addr add 10.77.0.2/24 dev veth0",
		"-n $A link set veth0 up", "-n $B link set veth0 up",
	}, commands...) {
		run(c)
	}
	var net network
	for i, n := range names {
		fd, err := unix.Open("/run/netns/"+n, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		net[i] = fd
	}
	return net
}

// open is open in one of both namespaces.
func (n network) open(t *testing.T, i int, c Config, h Handler) *Conn {
	t.Helper()
	type result struct {
		conn *Conn
		err  error
	}
	got := make(chan result)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		if err := unix.Setns(n[i], unix.CLONE_NEWNET); err != nil {
			got <- result{nil, err}
			return
		}
		conn, err := Listen(c)
		got <- result{conn, err}
	}()
	r := <-got
	require.NoError(t, r.err)
	done := make(chan error, 1)
	go func() { done <- r.conn.Run(h) }()
	t.Cleanup(func() {
		require.NoError(t, r.conn.Close())
		require.NoError(t, <-done)
	})
	return r.conn
}

// stampsOn waits until the kernel stamps what it receives, and keeps it so until the test
// ends. The first socket that asks for stamps switches them on for the whole kernel, from
// a work queue: on a busy machine packets arrive before that.
func (n network) stampsOn(t *testing.T) {
	t.Helper()
	heard := &recorder{}
	at := netip.MustParseAddrPort("10.77.0.2:18863")
	from := n.open(t, 0, Config{Addr: netip.MustParseAddrPort("10.77.0.1:18863"), Device: "veth0"}, &recorder{})
	n.open(t, 1, Config{Addr: at, Device: "veth0"}, heard)
	require.Eventually(t, func() bool {
		if _, err := from.Send(make([]byte, 4), at); err != nil {
			return false
		}
		heard.mu.Lock()
		defer heard.mu.Unlock()
		last := len(heard.received) - 1
		return last >= 0 && heard.received[last].Kind == stamp.KindKernel
	}, patience, time.Millisecond)
}

func TestBetweenNetworkNamespaces(t *testing.T) {
	n := newNetwork(t)
	n.stampsOn(t)
	now := time.Now().UnixNano()
	clocks := [2]*Skewed{
		NewSkewed(now, s, now, []Change{{Rate: 50e-6}}, nil),
		NewSkewed(now, 2*s, now, []Change{{Rate: -50e-6}}, nil),
	}
	var ends [2]*Conn
	var heard [2]*recorder
	var answering atomic.Pointer[Conn]
	for i := range ends {
		heard[i] = &recorder{onPacket: func(data []byte, from netip.AddrPort) {
			if c := answering.Load(); c != nil && i == 1 {
				_, err := c.Send(data, from)
				assert.NoError(t, err)
			}
		}}
		ends[i] = n.open(t, i, Config{Addr: netip.MustParseAddrPort(fmt.Sprintf("10.77.0.%d:18862", i+1)), Clock: clocks[i], Device: "veth0"}, heard[i])
	}
	b := ends[1]
	answering.Store(b)
	const packets = 500
	for i := range packets {
		_, err := ends[0].Send(binary.BigEndian.AppendUint32(nil, uint32(i)), b.LocalAddr())
		require.NoError(t, err)
		if i%20 == 19 {
			require.Eventually(t, func() bool { _, got := heard[0].counts(); return got == i+1 }, patience, time.Millisecond)
		}
	}
	require.Eventually(t, func() bool {
		a, _ := heard[0].counts()
		b, _ := heard[1].counts()
		return a == packets && b == packets
	}, patience, time.Millisecond)
	// Both directions bound the offset, of which the truth is known.
	for i := range packets {
		t1, t2 := heard[0].sent[uint32(i)], heard[1].received[i].Stamp
		t3, t4 := heard[1].sent[uint32(i)], heard[0].received[i].Stamp
		for _, s := range []stamp.Stamp{t1, t2, t3, t4} {
			require.Equal(t, stamp.KindKernel, int(s.Kind))
		}
		at, ok := clocks[0].TrueOfRaw(t1.Raw)
		require.True(t, ok)
		require.LessOrEqual(t, Offset(clocks[0], clocks[1], at), t2.Raw-t1.Raw+int64(t1.Width+t2.Width)+1)
		at, ok = clocks[0].TrueOfRaw(t4.Raw)
		require.True(t, ok)
		require.GreaterOrEqual(t, Offset(clocks[0], clocks[1], at), t3.Raw-t4.Raw-int64(t3.Width+t4.Width)-1)
	}
}

func TestAFullQueueIsAnErrorAndNoWait(t *testing.T) {
	n := newNetwork(t, "netns exec $A tc qdisc add dev veth0 root tbf rate 64kbit burst 2kb limit 20kb")
	h := &recorder{}
	c := n.open(t, 0, Config{Addr: netip.MustParseAddrPort("10.77.0.1:18862")}, h)
	n.open(t, 1, Config{Addr: netip.MustParseAddrPort("10.77.0.2:18862")}, &recorder{})
	setOption(t, c, unix.SOL_SOCKET, unix.SO_SNDBUF, 1) // the kernel's least
	accepted, busy := 0, int64(0)
	for range 200 {
		_, err := c.Send(make([]byte, 1000), netip.MustParseAddrPort("10.77.0.2:18862"))
		switch {
		case err == nil:
			accepted++
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS):
			busy++
		default:
			require.NoError(t, err)
		}
	}
	require.Positive(t, accepted)
	require.Positive(t, busy)
	assert.Equal(t, busy, c.Counters().SendBusy)
	require.Eventually(t, func() bool { sent, _ := h.counts(); return sent == accepted }, patience, time.Millisecond,
		"each is stamped, by the program if it waits for too long")
	assert.Zero(t, h.twice)
}
