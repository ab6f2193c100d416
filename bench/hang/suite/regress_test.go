// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Cases in which something wrong was said once, or of which a mend took what is right away:
// each by what it turns on.
var regressions = []struct {
	about                    string
	family, layout, evidence string
	rate                     int
	seed                     uint64
}{
	{"a job that ends, of which one state is older than the others", "healthy", "all64", "wrapped", 40, 1},
	{"the same, where nobody waits for the last one", "healthy", "ddp2", "torn", 10, 4004},
	{"a file that is cut knows how far its rank was", "healthy", "moe16", "torn", 0, 1},
	{"the age of what is only concluded is not known", "healthy", "all64", "torn", 20, 1},
	{"a batch is cut before its end, which has its state", "healthy", "batch4", "torn", 40, 2},
	{"messages of one batch make no cycle", "no_recv", "batch4", "torn", 0, 1},
	{"a message whose sender is through holds nobody up", "no_recv", "batch4", "whole", 0, 2},
	{"of what was cut no order is recorded", "swapped_groups", "tp4dp4", "torn", 0, 1},
	{"who turns a cycle may have something else open", "wrong_dtype", "moe16", "torn", 0, 1},
	{"numbers that count messages are not those of operations", "init_stuck", "all32", "only_active", 0, 1},
	{"two against one, where members were not seen", "wrong_op_two", "all32", "only_active", 50, 1},
	{"what those who are in it called was cut", "wrong_size_short", "all32", "torn", 10, 1},
	{"some are through and others not, and a member was not seen", "wrong_size_short", "tp4dp4", "torn", 20, 1},
	{"the message in question is over, and recorded", "stalled_message", "pipe2", "wrapped", 0, 1},
	{"what was received is over, whatever its sender sees", "device_stopped", "pipe4", "whole", 50, 1001},
	{"what a late device sent may have come", "device_stopped", "pipe4", "only_active", 0, 4004},
	{"a late device takes part in a cycle", "two_faults", "batch4", "only_active", 0, 4002},
	{"operations beside a device that may be late", "device_one", "tp4dp4", "only_active", 0, 4002},
}

func TestRegressions(t *testing.T) {
	for _, r := range regressions {
		t.Run(r.about, func(t *testing.T) {
			s := Selection{
				Families: []string{r.family}, Layouts: []string{r.layout}, Evidences: []string{r.evidence},
				Rates: []int{r.rate}, Seeds: []uint64{r.seed},
			}
			ran := 0
			require.NoError(t, Run(&s, Engine, 1, func(c Case) {
				ran++
				var text strings.Builder
				c.PrintVerdict(&text)
				assert.False(t, c.Wrong(), "go run ./bench/hang %s -print\n%s", c.Name(), text.String())
			}))
			assert.Equal(t, 1, ran)
		})
	}
}

// The name of what a device stands in was overwritten, and later operations are over elsewhere.
func TestOutrunOperationIsTold(t *testing.T) {
	s := Selection{Families: []string{"device_stopped"}, Layouts: []string{"zero8"}, Evidences: []string{"wrapped"}, Rates: []int{0}, Seeds: []uint64{2}}
	require.NoError(t, Run(&s, Engine, 1, func(c Case) {
		assert.Equal(t, []Fate{Told}, c.Outcome.Faults)
	}))
}
