// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestLogLineSentences(t *testing.T) {
	for want, text := range map[string]string{
		": the tracker named iteration 7 where the greatest of all ranks was 9, which is loaded, as a line of a log says":               `{"pattern":"megatron_iteration","said":{"iteration":"7","max_iteration":"9"},"lines":1}`,
		": shards of the optimizer's state are not there, the first a.pt, and it is not loaded, as 2 lines of logs say, this the first": `{"pattern":"deepspeed_shards","said":{"first":"a.pt"},"lines":2}`,
		": ranks of one communicator run different versions of NCCL, 22703 on rank 0 and 22602 on rank 8, as a line of a log says":      `{"pattern":"nccl_version","said":{"rank":"0","version":"22703","other_rank":"8","other_version":"22602"},"lines":1}`,
		": ranks of one communicator see different numbers of network devices, 1 to 2, as a line of a log says":                         `{"pattern":"nccl_net_devices","said":{"min":"1","max":"2"},"lines":1}`,
		": the driver's libraries are not of the version of its kernel module, as a line of a log says":                                 `{"pattern":"nvml_library","lines":1}`,
		": the driver's libraries are 550.1, its kernel module another, as a line of a log says":                                        `{"pattern":"nvidia_api","said":{"client":"550.1"},"lines":1}`,
		": the fabric manager is 530.30.02, the driver 530.41.03, as a line of a log says":                                              `{"pattern":"fabric_manager","said":{"fabric_manager":"530.30.02","driver":"530.41.03"},"lines":1}`,
		": ranks save one checkpoint under different tags, here x, as a line of a log says":                                             `{"pattern":"deepspeed_tag","said":{"tag":"x"},"lines":1}`,
		"": `{`,
	} {
		f := model.Finding{Kind: model.FindingEpoch, Class: model.ClassFleetMixed, Op: model.OpLogLine + "x", JobID: "j", Confidence: 0.9, Evidence: evidence.Text(text)}
		assert.Equal(t, "job j: epoch (fleet_mixed)"+want+" (confidence 0.90)", Sentence(&f))
		f.JobID = ""
		assert.Equal(t, "a job or host that nothing names: epoch (fleet_mixed)"+want+" (confidence 0.90)", Sentence(&f))
	}
}
