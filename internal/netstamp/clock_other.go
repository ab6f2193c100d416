// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package netstamp

import "time"

var start = time.Now()

func readRaw() int64 { return int64(time.Since(start)) }

func readTrue() int64 { return time.Now().UnixNano() }
