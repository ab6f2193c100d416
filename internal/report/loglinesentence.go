// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// ofLogLine says what the line means, and that it is the line which says so.
func ofLogLine(f *model.Finding) string {
	ev, ok := evidence.As[evidence.LogLine](f.Evidence)
	if !ok {
		return ""
	}
	said := func(name string) string {
		if v := ev.Said[name]; v != "" {
			return v
		}
		return "another"
	}
	var claim string
	switch ev.Pattern {
	case "megatron_iteration":
		claim = fmt.Sprintf("the tracker named iteration %s where the greatest of all ranks was %s, which is loaded", said("iteration"), said("max_iteration"))
	case "deepspeed_shards":
		claim = fmt.Sprintf("shards of the optimizer's state are not there, the first %s, and it is not loaded", said("first"))
	case "deepspeed_tag":
		claim = fmt.Sprintf("ranks save one checkpoint under different tags, here %s", said("tag"))
	case "nccl_version":
		claim = fmt.Sprintf("ranks of one communicator run different versions of NCCL, %s on rank %s and %s on rank %s", said("version"), said("rank"), said("other_version"), said("other_rank"))
	case "nccl_net_devices":
		claim = fmt.Sprintf("ranks of one communicator see different numbers of network devices, %s to %s", said("min"), said("max"))
	case "nvidia_api", "nvml_library":
		claim = "the driver's libraries are not of the version of its kernel module"
		if ev.Said["client"] != "" {
			claim = fmt.Sprintf("the driver's libraries are %s, its kernel module %s", said("client"), said("kernel_module"))
		}
	case "fabric_manager":
		claim = fmt.Sprintf("the fabric manager is %s, the driver %s", said("fabric_manager"), said("driver"))
	default:
		return ""
	}
	if ev.Lines == 1 {
		return fmt.Sprintf(": %s, as a line of a log says", claim)
	}
	return fmt.Sprintf(": %s, as %d lines of logs say, this the first", claim, ev.Lines)
}
