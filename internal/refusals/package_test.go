// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the tables of testdata")

// parallel is how many components run at a time: they wait for most of their time.
const parallel = "24"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
