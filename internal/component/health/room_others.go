// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package health

import "errors"

// Room returns how many bytes are free for this user on the disk of a directory, and how many it has.
func Room(string) (free, total uint64, err error) { return 0, 0, errors.ErrUnsupported }
