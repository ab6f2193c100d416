// SPDX-License-Identifier: Apache-2.0

package torchname

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestCollectiveNames(t *testing.T) {
	tests := map[string]string{
		"allreduce": model.AllReduce, "all_reduce": model.AllReduce, "allreduce_": model.AllReduce, "all_reduce_coalesced": model.AllReduce,
		"_allgather_base": model.AllGather, "_all_gather_base": model.AllGather, "allgather_into_tensor_coalesced": model.AllGather,
		"reduce_scatter_tensor": model.ReduceScatter, "_reduce_scatter_base": model.ReduceScatter,
		"ALLGATHER_coalesced": model.AllGather, "_broadcast_oop": model.Broadcast, "all_to_all": model.AllToAll, "all_to_allv": model.AllToAll, "alltoall": model.AllToAll, "alltoall_base_": model.AllToAll,
		"broadcast": model.Broadcast, "broadcast_": model.Broadcast, "reduce": model.Reduce, "barrier": model.Barrier,
		"send": Send, "recv": Recv, "wait": "", "init": "", "": "",
	}
	for in, want := range tests {
		assert.Equal(t, want, Collective(in), in)
	}
}
