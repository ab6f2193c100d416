// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxLine bounds an answer of one line: NCCL's own client takes 1,024 bytes.
	maxLine = 1024
	// protocol is the version of the client protocol since NCCL 2.24; servers ignore it.
	protocol = "2"
)

// ErrTextOnly is why a server is of no use that answers in prose only, as those before NCCL
// 2.28.7 do: prose does not tell of every rank.
var ErrTextOnly = errors.New("got a server that knows no JSON; want NCCL 2.28.7 or later")

// Client asks one address.
type Client struct {
	// Address is host:port, NCCL's own being localhost:28028.
	Address string
	// Wait is how long the asked process waits for the others.
	Wait time.Duration
	// Timeout bounds the whole exchange.
	Timeout time.Duration
	// MaxBytes bounds the answer.
	MaxBytes int64
}

// CheckAddress says why an address can not be asked.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("got %q; want host:port: %w", address, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || n == 0 {
		return fmt.Errorf("got %q; want host:port", address)
	}
	return nil
}

// Nobody reports whether an error is that no process listens: there is no job, or it has no RAS.
func Nobody(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// Status asks for the state of the job of whichever process answers. Errors of the network
// are wrapped, ErrTextOnly too.
func (c *Client) Status(ctx context.Context) (s *Status, err error) {
	err = c.talk(ctx, func(conn io.ReadWriter) error {
		s, err = c.status(conn)
		return err
	})
	return s, err
}

// talk connects, and has the exchange done.
func (c *Client) talk(ctx context.Context, exchange func(io.ReadWriter) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return fmt.Errorf("ask NCCL's RAS: %w", err)
	}
	// Closing is what makes a read that waits return.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		stop()
		_ = conn.Close() // only read from
	}()
	err = exchange(conn)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("got no whole answer in %v: %w", c.Timeout, ctx.Err())
	}
	return fmt.Errorf("ask NCCL's RAS at %s: %w", c.Address, err)
}

// JSON asks as Status does, and returns the answer as it came.
func (c *Client) JSON(ctx context.Context) (answer []byte, err error) {
	err = c.talk(ctx, func(conn io.ReadWriter) error {
		in, err := c.ask(conn)
		if err != nil {
			return err
		}
		if answer, err = io.ReadAll(&limited{in: in, left: c.MaxBytes, limit: c.MaxBytes}); err != nil {
			return fmt.Errorf("read status: %w", err)
		}
		return nil
	})
	return answer, err
}

func (c *Client) status(conn io.ReadWriter) (*Status, error) {
	in, err := c.ask(conn)
	if err != nil {
		return nil, err
	}
	return Parse(in, c.MaxBytes)
}

// ask asks for a status as JSON, and returns what the answer comes from.
func (c *Client) ask(conn io.ReadWriter) (io.Reader, error) {
	in, err := c.greet(conn)
	if err != nil {
		return nil, err
	}
	answer, err := command(conn, in, "SET FORMAT json")
	switch {
	case err != nil:
		return nil, err
	case hasPrefixFold(answer, "ERROR"):
		return nil, fmt.Errorf("set format: got %q: %w", answer, ErrTextOnly)
	case !strings.EqualFold(answer, "OK"):
		return nil, fmt.Errorf("set format: got %q; want OK", answer)
	}
	return in, send(conn, "VERBOSE STATUS")
}

// greet begins an exchange, and says how long to wait.
func (c *Client) greet(conn io.ReadWriter) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(conn, maxLine)
	answer, err := command(conn, in, "CLIENT PROTOCOL "+protocol)
	if err != nil {
		return nil, err
	}
	if !hasPrefixFold(answer, "SERVER PROTOCOL ") {
		return nil, fmt.Errorf("read greeting: got %q; want SERVER PROTOCOL", answer)
	}
	if answer, err = command(conn, in, fmt.Sprintf("TIMEOUT %d", int(c.Wait.Seconds()))); err != nil {
		return nil, err
	}
	if !strings.EqualFold(answer, "OK") {
		return nil, fmt.Errorf("set timeout: got %q; want OK", answer)
	}
	return in, nil
}

// command sends a line and reads the one that answers it.
func command(out io.Writer, in *bufio.Reader, line string) (string, error) {
	if err := send(out, line); err != nil {
		return "", err
	}
	answer, err := in.ReadSlice('\n')
	if err != nil {
		return "", fmt.Errorf("read answer to %q: %w", line, err)
	}
	return strings.TrimRight(string(answer), "\r\n"), nil
}

func send(out io.Writer, line string) error {
	if _, err := io.WriteString(out, line+"\n"); err != nil {
		return fmt.Errorf("send %q: %w", line, err)
	}
	return nil
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
