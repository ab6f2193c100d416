// SPDX-License-Identifier: Apache-2.0

package clockstate

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// answerLimit is how long a daemon has for one answer where the context says
	// nothing shorter. Daemons on the same host answer in a millisecond.
	answerLimit = time.Second
	// datagramLimit is larger than every answer that is asked for here.
	datagramLimit = 1500
	// strayLimit bounds the datagrams that are read for one answer: late answers to
	// earlier questions, one answer per port.
	strayLimit = 256
)

// ask sends datagrams and hands what comes back to take, until it says that this
// was all. An address that begins with a slash is a Unix socket, else it is UDP.
func ask(ctx context.Context, address string, requests [][]byte, take func(reply []byte) (done bool, err error)) error {
	conn, clean, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer clean()
	deadline := time.Now().Add(answerLimit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("limit the answer of %s: %w", address, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for _, request := range requests {
		if _, err := conn.Write(request); err != nil {
			return fmt.Errorf("ask %s: %w", address, err)
		}
	}
	reply := make([]byte, datagramLimit)
	for range strayLimit {
		n, err := conn.Read(reply)
		if err != nil {
			return fmt.Errorf("read answer of %s: %w", address, err)
		}
		done, err := take(reply[:n])
		if err != nil {
			return fmt.Errorf("read answer of %s: %w", address, err)
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("read answer of %s: got %d others; want one to our question", address, strayLimit)
}

var sockets atomic.Uint64

// dial connects. A daemon answers on a Unix socket only to one that has a name that
// it can reach, so ours lies beside the daemon's, as those of chronyc and pmc do.
func dial(ctx context.Context, address string) (net.Conn, func(), error) {
	if !strings.HasPrefix(address, "/") {
		conn, err := new(net.Dialer).DialContext(ctx, "udp", address)
		if err != nil {
			return nil, nil, fmt.Errorf("connect to %s: %w", address, err)
		}
		return conn, func() { conn.Close() }, nil
	}
	own := filepath.Join(filepath.Dir(address), fmt.Sprintf("lockstep.%d.%d.sock", os.Getpid(), sockets.Add(1)))
	_ = os.Remove(own) // of a process that had our number and was killed
	conn, err := net.DialUnix("unixgram", &net.UnixAddr{Name: own, Net: "unixgram"}, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		_ = os.Remove(own)
		return nil, nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	clean := func() {
		conn.Close()
		_ = os.Remove(own)
	}
	// The daemon may run as another user; what it sends is all that this lets in.
	if err := os.Chmod(own, 0o666); err != nil {
		clean()
		return nil, nil, fmt.Errorf("open %s to the daemon: %w", own, err)
	}
	return conn, clean, nil
}
