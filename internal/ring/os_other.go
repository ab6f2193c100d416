// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ring

import (
	"errors"
	"os"
)

// Producers exist on Linux only.
const openFlags = os.O_RDONLY

func mapFile(*os.File, int64, int, bool) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }

func ownerOf(os.FileInfo) (uid, gid uint32, ok bool) { return 0, 0, false }

func locked(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func holder(*os.File) (held bool, pid int32, err error) { return false, 0, errors.ErrUnsupported }

// Now reads the clock that rings use: CLOCK_MONOTONIC_RAW, ns. 0 on systems
// without rings.
func Now() uint64 { return 0 }

// BootID is the id of the host's boot; empty on systems without rings.
func BootID() string { return "" }
