// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// network is hosts, each in a network namespace of its own, joined by a bridge.
type network struct{ hosts []string }

// newNetwork makes n hosts, and removes them with the test.
func newNetwork(t *testing.T, n int) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "make network namespaces: got user %d; want root", os.Geteuid())
	}
	packaged(t, "ip")
	w := &network{}
	hub := fmt.Sprintf("lse2e%d-hub", os.Getpid())
	addNamespace(t, hub)
	mustIP(t, "-n", hub, "link", "add", "br0", "type", "bridge", "stp_state", "0")
	mustIP(t, "-n", hub, "link", "set", "br0", "up")
	for i := range n {
		host, port := fmt.Sprintf("lse2e%d-%d", os.Getpid(), i), fmt.Sprintf("port%d", i)
		addNamespace(t, host)
		mustIP(t, "link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", port, "netns", hub)
		mustIP(t, "-n", hub, "link", "set", port, "master", "br0", "up")
		mustIP(t, "-n", host, "addr", "add", address(i)+"/24", "dev", "eth0")
		mustIP(t, "-n", host, "link", "set", "lo", "up")
		mustIP(t, "-n", host, "link", "set", "eth0", "up")
		w.hosts = append(w.hosts, host)
	}
	return w
}

// address is that of a host of a network.
func address(host int) string { return fmt.Sprintf("10.89.0.%d", host+1) }

func addNamespace(t *testing.T, name string) {
	t.Helper()
	if out, err := command("ip", "netns", "add", name); err != nil {
		missing(t, "make a network namespace: %v: %s", err, out)
	}
	t.Cleanup(func() { _, _ = command("ip", "netns", "del", name) }) // an error says that it is gone
}

func mustIP(t *testing.T, args ...string) {
	t.Helper()
	out, err := command("ip", args...)
	require.NoError(t, err, "ip %v: %s", args, out)
}

// command returns what a program prints, also while a test is cleaned up.
func command(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(out), err
}

// client speaks HTTP as if it ran on a host.
func (w *network) client(host int) *http.Client {
	return &http.Client{
		Timeout:   requestLimit,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: w.dialFrom(host)},
	}
}

// dialFrom connects from a host's namespace. A thread that has been there is not
// used for anything else: it ends with its goroutine.
func (w *network) dialFrom(host int) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		type result struct {
			conn net.Conn
			err  error
		}
		done := make(chan result, 1)
		go func() {
			runtime.LockOSThread()
			var r result
			if r.err = enter(w.hosts[host]); r.err == nil {
				r.conn, r.err = new(net.Dialer).DialContext(ctx, network, address)
			}
			done <- r
		}()
		r := <-done
		return r.conn, r.err
	}
}

// setns is the number of the system call, which package syscall does not have.
var setns = map[string]uintptr{"amd64": 308, "arm64": 268}

// enter moves the calling thread into a network namespace.
func enter(name string) error {
	f, err := os.Open("/run/netns/" + name)
	if err != nil {
		return err
	}
	defer f.Close()
	number, ok := setns[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("enter %s: got architecture %s", name, runtime.GOARCH)
	}
	if _, _, errno := syscall.RawSyscall(number, f.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return fmt.Errorf("enter %s: %w", name, errno)
	}
	return nil
}

// answer returns the body of a 200 answer.
func answer(resp *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask %s: status %d: %.300s", resp.Request.URL, resp.StatusCode, body)
	}
	return body, nil
}
