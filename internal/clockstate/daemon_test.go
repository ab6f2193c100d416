// SPDX-License-Identifier: Apache-2.0

//go:build linux

package clockstate

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// daemonLimit is generous: ptp4l elects a master for seconds, on busy cores longer.
const daemonLimit = 60 * time.Second

// daemon starts a program that does not outlive its test.
func daemon(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	output := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = output, output
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, output)
		}
	})
}

// missing skips the test, or fails it where every part is required.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("LOCKSTEP_E2E_REQUIRE") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func installed(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, "find %s: %v", name, err)
		}
	}
}

// within polls until check returns no error.
func within(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(daemonLimit)
	for {
		err := check()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(deadline), "not within %s: %v", daemonLimit, err)
		time.Sleep(50 * time.Millisecond)
	}
}

// startNTP answers NTP requests with the host's time and 250 ms.
func startNTP(t *testing.T) (port int) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 512)
		for {
			n, from, err := conn.ReadFromUDP(b)
			if err != nil {
				return
			}
			received := ntpTime(250 * time.Millisecond)
			if n < 48 {
				continue
			}
			reply := make([]byte, 48)
			reply[0], reply[1], reply[2], reply[3] = 4<<3|4, 1, b[2], 0xec // version 4, server; stratum 1; poll; 2^-20 s
			copy(reply[12:], "TEST")
			binary.BigEndian.PutUint64(reply[16:], received)
			copy(reply[24:], b[40:48])
			binary.BigEndian.PutUint64(reply[32:], received)
			binary.BigEndian.PutUint64(reply[40:], ntpTime(250*time.Millisecond))
			_, _ = conn.WriteToUDP(reply, from)
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return conn.LocalAddr().(*net.UDPAddr).Port
}

func ntpTime(ahead time.Duration) uint64 {
	const epoch = 2208988800 // 1970 in seconds since 1900
	now := time.Now().Add(ahead)
	return uint64(now.Unix()+epoch)<<32 | uint64(now.Nanosecond())<<32/1e9
}

// A real chronyd that follows a server 250 ms ahead says so, by socket and by port.
// It is started with -x: it never touches the host's clock.
func TestRealChrony(t *testing.T) {
	installed(t, "chronyd")
	dir := filepath.Join(t.TempDir(), "c")
	require.NoError(t, os.Mkdir(dir, 0o750))
	port, socket := startNTP(t), filepath.Join(dir, "chronyd.sock")
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.LocalAddr().String()
	require.NoError(t, free.Close())
	_, command, err := net.SplitHostPort(address)
	require.NoError(t, err)
	config := filepath.Join(dir, "chrony.conf")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
server 127.0.0.1 port %d minpoll -4 maxpoll -4 iburst
port 0
cmdport %s
bindcmdaddress 127.0.0.1
bindcmdaddress %s
pidfile %s/pid
`, port, command, socket, dir), 0o600))
	daemon(t, "chronyd", "-x", "-U", "-d", "-u", currentUser(t), "-f", config)

	const truth = 250_000_000
	for _, at := range []string{socket, address} {
		within(t, func() error {
			before := time.Now().UnixNano()
			tracking, err := ReadChrony(t.Context(), at)
			if err != nil {
				return err
			}
			edge, ok := tracking.Edge("host:here/1/realtime", before, time.Now().UnixNano())
			if !ok || edge.Upper-edge.Lower > truth/2 {
				return fmt.Errorf("follow the server: got %+v, %+v", tracking, edge)
			}
			assert.LessOrEqual(t, edge.Lower, int64(truth))
			assert.GreaterOrEqual(t, edge.Upper, int64(truth))
			assert.Equal(t, "utc:chrony/7F000001/host:here/1/realtime", edge.Dst)
			assert.Equal(t, uint16(2), tracking.Stratum)
			return nil
		})
	}
	assertNoSockets(t, dir)
}

func currentUser(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "id", "-un").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func assertNoSockets(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "lockstep.*"))
	require.NoError(t, err)
	assert.Empty(t, left, "sockets of ours")
}

// Nobody there, somebody who does not answer, and a context that ends.
func TestDaemonsThatDoNotAnswer(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadChrony(t.Context(), filepath.Join(dir, "none.sock"))
	require.ErrorContains(t, err, "none.sock")
	_, err = ReadPTP(t.Context(), filepath.Join(dir, "none"), 0)
	require.ErrorContains(t, err, "none")

	silent := filepath.Join(dir, "silent")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: silent, Net: "unixgram"})
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = ReadChrony(ctx, silent)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = ReadPTP(ended, silent, 0)
	require.Error(t, err)
	assertNoSockets(t, dir)
}

// A real ptp4l, running free beside a real master in another network namespace. Both
// read one clock, and the master is told to announce that it stands on TAI, 37 s
// ahead of UTC: so the follower must find its own clock 37 s ahead of the master's
// UTC.
func TestRealPTP(t *testing.T) {
	installed(t, "ptp4l", "pmc", "ip")
	dir := t.TempDir()
	near, far := namespaces(t)
	ptp4l(t, near, dir, "master", "10")
	ptp4l(t, far, dir, "follower", "200")
	within(t, func() error {
		out, err := exec.CommandContext(t.Context(), "pmc", "-u", "-b", "0", "-i", filepath.Join(dir, "pmc"), "-s", filepath.Join(dir, "master"),
			"SET GRANDMASTER_SETTINGS_NP clockClass 6 clockAccuracy 0xfe offsetScaledLogVariance 0xffff currentUtcOffset 37 leap61 0 leap59 0 "+
				"currentUtcOffsetValid 1 ptpTimescale 1 timeTraceable 1 frequencyTraceable 0 timeSource 0xa0").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "RESPONSE") {
			return fmt.Errorf("tell the master: %w: %s", err, out)
		}
		return nil
	})
	const truth = -37_000_000_000 // the master's less the follower's
	within(t, func() error {
		s, err := ReadPTP(t.Context(), filepath.Join(dir, "follower"), 0)
		if err != nil {
			return err
		}
		edge, ok := s.Edge("host:far/1/realtime", time.Now().UnixNano(), int64(10*time.Second))
		// A second is far more than what a message is late by, on the busiest of cores,
		// and far less than 37 s.
		if off := edge.Offset - truth; !ok || off > int64(time.Second) || off < -int64(time.Second) {
			return fmt.Errorf("follow the master: got %+v, %+v", s, edge)
		}
		assert.Equal(t, "veth0", s.Interface)
		assert.False(t, s.Hardware)
		assert.Positive(t, s.PathDelay)
		assert.Equal(t, uint16(1), s.StepsRemoved)
		return nil
	})
	assertNoSockets(t, dir)
}

func ptp4l(t *testing.T, namespace, dir, name, priority string) {
	t.Helper()
	config := filepath.Join(dir, name+".conf")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `[global]
time_stamping software
free_running 1
priority1 %s
uds_address %s
logAnnounceInterval -2
announceReceiptTimeout 4
logSyncInterval -3
logMinDelayReqInterval -3
[veth0]
`, priority, filepath.Join(dir, name)), 0o600))
	daemon(t, "ip", "netns", "exec", namespace, "ptp4l", "-4", "-m", "-q", "-f", config)
}

// namespaces returns two network namespaces that are joined by veth0 at each end.
func namespaces(t *testing.T) (near, far string) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "make network namespaces: want root")
	}
	near, far = fmt.Sprintf("lsclock%da", os.Getpid()), fmt.Sprintf("lsclock%db", os.Getpid())
	ip := func(args ...string) error {
		out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	for i, name := range []string{near, far} {
		if err := ip("netns", "add", name); err != nil {
			missing(t, "make network namespaces: %v", err)
		}
		t.Cleanup(func() { _ = ip("netns", "del", name) })
		if i == 0 {
			continue
		}
		require.NoError(t, ip("link", "add", "veth0", "netns", near, "type", "veth", "peer", "name", "veth0", "netns", far))
	}
	for i, name := range []string{near, far} {
		require.NoError(t, ip("-n", name, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "veth0"))
		require.NoError(t, ip("-n", name, "link", "set", "veth0", "up"))
		require.NoError(t, ip("-n", name, "link", "set", "lo", "up"))
	}
	return near, far
}
