// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package frwatch

import "os"

const (
	readFlags = os.O_RDONLY
	pipeFlags = os.O_WRONLY
)

func isLink(error) bool { return false }

func noReader(error) bool { return false }

func writeNow(f *os.File, b []byte) error {
	_, err := f.Write(b)
	return err
}
