// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "time"

var began = time.Now()

// processorTime returns wall clock where the kernel does not count processor time.
func processorTime() time.Duration { return time.Since(began) }
