// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestFleetSentences(t *testing.T) {
	for want, f := range map[string]model.Finding{
		"communicator world of job j: epoch (fleet_mixed): nvidia_kernel_driver is 550.90.07 on 48 ranks of 6 nodes, and 580.126.09 or 580.95.05 on 8 ranks of 1 node (the first node7); known of 56 of 64 ranks; so are 9 further communicators of these ranks (confidence 1.00)": {
			CommID: "0xabc", CommName: "world",
			Evidence: evidence.Text(`{"domain":"nvidia_kernel_driver","held":[{"versions":["550.90.07"],"nodes":6,"ranks":48,"first_host":"node1"},{"versions":["580.126.09","580.95.05"],"nodes":1,"ranks":8,"first_host":"node7"}],"ranks":64,"known":56,"covered_communicators":9}`),
		},
		"communicator 0xabc of job j: epoch (fleet_mixed): nic_firmware of MT_0000000838 is 28.39.1002 on 1 rank of 1 node, and 28.41.1000 on 1 rank of 1 node (the first node2); known of 2 of 2 ranks (confidence 1.00)": {
			CommID:   "0xabc",
			Evidence: evidence.Text(`{"domain":"nic_firmware","model":"MT_0000000838","held":[{"versions":["28.39.1002"],"nodes":1,"ranks":1},{"versions":["28.41.1000"],"nodes":1,"ranks":1,"first_host":"node2"}],"ranks":2,"known":2}`),
		},
		"communicator 0xabc of job j: epoch (fleet_mixed): nccl is 2.19.3 on 1 rank, and 2.20.5 on 1 rank; known of 2 of 2 ranks (confidence 1.00)": {
			CommID:   "0xabc",
			Evidence: evidence.Text(`{"domain":"nccl","held":[{"versions":["2.19.3"],"nodes":1,"ranks":1},{"versions":["2.20.5"],"nodes":1,"ranks":1}],"ranks":2,"known":2}`),
		},
		"communicator 0xabc of job j: epoch (fleet_mixed) (confidence 1.00)": {CommID: "0xabc", Evidence: evidence.Text("{")},
	} {
		f.Kind, f.Class, f.JobID, f.Confidence, f.Ranks = model.FindingEpoch, model.ClassFleetMixed, "j", 1, []int64{7}
		assert.Equal(t, want, Sentence(&f))
	}
}
