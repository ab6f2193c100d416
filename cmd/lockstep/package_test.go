// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// parallel is how many of the parallel tests run at once, on however few cores: nearly all
// of their time they wait for other processes.
const parallel = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
