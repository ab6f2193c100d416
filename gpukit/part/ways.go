// SPDX-License-Identifier: Apache-2.0

package part

import (
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
)

// gpuWay is a way to have several ranks of NCCL on one GPU. NCCL takes ranks of two hosts
// to have two GPUs.
type gpuWay struct {
	Name string
	Env  func(rank int) []string
}

const (
	multiRank = "NCCL_MULTI_RANK_GPU_ENABLE"
	hostID    = "NCCL_HOSTID"
)

// noWay is why a library cannot have several ranks on one GPU.
const noWay = "this libnccl has neither " + multiRank + " nor " + hostID + ": it allows one rank on a GPU"

// gpuWays returns the ways that the machine's NCCL may have, best first.
func gpuWays(k *kit.Kit) ([]gpuWay, error) {
	if k.Torch == nil || k.Torch.LibNCCL == "" {
		// Every NCCL has this one; more is not known of a library elsewhere.
		return waysOf(map[string]bool{hostID: true}), nil
	}
	has, err := stringsOf(k.Torch.LibNCCL, multiRank, hostID)
	return waysOf(has), err
}

// waysOf returns the ways that a library with these strings may have, best first.
func waysOf(has map[string]bool) (ways []gpuWay) {
	if has[multiRank] {
		ways = append(ways, gpuWay{multiRank, func(int) []string { return []string{multiRank + "=1"} }})
	}
	if has[hostID] {
		ways = append(ways, gpuWay{hostID, func(rank int) []string { return []string{hostID + "=lockstep-" + strconv.Itoa(rank)} }})
	}
	return ways
}

// ncclNetwork lets ranks of one GPU meet over loopback: nothing that needs another GPU,
// memory of two processes or a network card, and few channels, since the kernels of two
// processes take turns on the device.
var ncclNetwork = []string{
	"NCCL_NET_PLUGIN=none", "NCCL_NET=Socket", "NCCL_IB_DISABLE=1", "NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1",
	"NCCL_NVLS_ENABLE=0", "NCCL_MNNVL_ENABLE=0", "NCCL_COLLNET_ENABLE=0", "NCCL_GIN_ENABLE=0", "NCCL_CUMEM_ENABLE=0",
	"NCCL_CUMEM_HOST_ENABLE=0", "NCCL_MAX_NCHANNELS=2", "NCCL_MAX_P2P_NCHANNELS=2",
}

// ncclRefusals are NCCL's words where a machine allows no second rank on its GPU: for the
// GPU itself, and for a /dev/shm without room.
var ncclRefusals = []string{"Duplicate GPU detected", "Error: failed to extend /dev/shm/"}

// ncclRefusal returns NCCL's words in a log; empty where it refused nothing.
func ncclRefusal(log string) string {
	for line := range strings.Lines(log) {
		for _, words := range ncclRefusals {
			if at := strings.Index(line, words); at >= 0 {
				return strings.TrimSpace(line[at:])
			}
		}
	}
	return ""
}
