// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestCommunicationKernelNames(t *testing.T) {
	comm := func(collective, algo, proto, dtype string) kernelName {
		return kernelName{comm: true, collective: collective, algo: algo, proto: proto, dtype: dtype}
	}
	tests := map[string]kernelName{
		"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)":       comm(model.AllReduce, "RING", "LL", "float32"),
		"ncclDevKernel_AllReduce_Sum_bf16_TREE_LL128(ncclDevKernelArgsStorage<4096ul>)":        comm(model.AllReduce, "TREE", "LL128", "bfloat16"),
		"ncclDevKernel_ReduceScatter_Sum_f32_NVLS_TREE_SIMPLE(x)":                              comm(model.ReduceScatter, "NVLS_TREE", "SIMPLE", "float32"),
		"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)":   comm(model.SendRecv, "", "", ""),
		"ncclKernel_AllGather_RING_LL_Sum_int8_t(x)":                                           comm(model.AllGather, "RING", "LL", ""),
		"ncclKernel_Broadcast_RING_LL_Sum_int8_t(x)":                                           comm(model.Broadcast, "RING", "LL", ""),
		"ncclDevKernel_Reduce_Sum_f16_RING_LL(x)":                                              comm(model.Reduce, "RING", "LL", "float16"),
		"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)":                            comm("", "", "", ""),
		"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(at::ReduceOp<>)": {},
		"nccl_test_helper": {},
	}
	for raw, want := range tests {
		assert.Equal(t, want, parseKernelName(raw), raw)
	}
}

func TestMarkNames(t *testing.T) {
	tests := []struct {
		in, name string
		peer     int64
	}{
		{"nccl:all_reduce", model.AllReduce, -1},
		{"gloo:all_reduce", model.AllReduce, -1},
		{"c10d::allreduce_", model.AllReduce, -1},
		{"nccl:send 0->1", nameSend, 1},
		{"nccl:recv 4<-12", nameRecv, 12},
		{"record_param_comms", "", -1},
	}
	for _, tt := range tests {
		name, peer := markName(tt.in)
		assert.Equal(t, tt.name, name, tt.in)
		assert.Equal(t, tt.peer, peer, tt.in)
	}
}
