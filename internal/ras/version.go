// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"context"
	"fmt"
	"io"
	"regexp"
)

// versionLine is the first line of what STATUS says in prose: "NCCL version 2.28.7 compiled with
// CUDA 12.9".
var versionLine = regexp.MustCompile(`^NCCL version (\d+\.\d+\S*) compiled with CUDA `)

// Version asks for the version of NCCL of whichever process answers: of that process, and of no
// other of its job.
//
// It asks for prose. That begins with the version, at once, and is some KB; JSON begins with it,
// too, but once the whole job has answered, is as long without VERBOSE as with it, and is not known
// to servers before NCCL 2.28.7. No command tells the version alone: as with any other status, the
// process that is asked has all others of its job answer.
func (c *Client) Version(ctx context.Context) (version string, err error) {
	err = c.talk(ctx, func(conn io.ReadWriter) error {
		version, err = c.version(conn)
		return err
	})
	return version, err
}

func (c *Client) version(conn io.ReadWriter) (string, error) {
	in, err := c.greet(conn)
	if err != nil {
		return "", err
	}
	line, err := command(conn, in, "STATUS")
	if err != nil {
		return "", err
	}
	m := versionLine.FindStringSubmatch(line)
	if m == nil {
		return "", fmt.Errorf("read status: got %q; want NCCL version and a number", line)
	}
	// The rest is waited for: a process that has begun a status does not see that who asked has
	// hung up, and spins on the connection until all have answered. However it ends, the version
	// is known.
	_, _ = io.Copy(io.Discard, io.LimitReader(in, c.MaxBytes))
	return m[1], nil
}
