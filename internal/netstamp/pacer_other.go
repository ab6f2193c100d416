// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package netstamp

import "time"

func sharpen() (undo func()) { return func() {} }

func monotonic() int64 { return int64(time.Since(start)) }

func sleepUntil(t int64) { time.Sleep(time.Duration(t - monotonic())) }
