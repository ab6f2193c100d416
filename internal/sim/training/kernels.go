// SPDX-License-Identifier: Apache-2.0

package training

import (
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// work says with what a kernel's time grows.
type work uint8

const (
	workNone    work = iota
	workTokens       // of the microbatch
	workPairs        // of tokens, as attention
	workExperts      // tokens that were sent to the rank's experts
)

// kernel is one kernel at one place of a layer: name, grid and length.
type kernel struct {
	name, key string
	other     string // the name under which it runs where another was chosen for the same work
	blocks    int    // of the grid's first dimension, where it grows with tokens
	rest      string
	nanos     float64
	work      work
	copied    int64 // bytes, of a copy
}

func gemm(shape string, x, y int, nanos float64) kernel {
	const name = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_"
	return kernel{
		name: name + shape + "_tilesize128x128x64_cublas", other: name + shape + "_tilesize64x64x32_cublas", key: name + shape + "_cublas",
		blocks: x, rest: "," + strconv.Itoa(y) + ",1", nanos: nanos, work: workTokens,
	}
}

func simple(name, key string, x, y int, nanos float64, w work) kernel {
	return kernel{name: name, other: name + "_nthreads64", key: key, blocks: x, rest: "," + strconv.Itoa(y) + ",1", nanos: nanos, work: w}
}

func norm(nanos float64) kernel {
	return simple("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>", "at::native::vectorized_layer_norm_kernel", 4096, 1, nanos, workTokens)
}

// The kernels of a layer, in order; times are those of a large model's layer on a
// current device. The names are as profilers show them.
var (
	attention = []kernel{
		norm(60e3),
		gemm("tn_n", 32, 48, 500e3),
		simple("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>", "flash_fwd_kernel", 32, 32, 450e3, workPairs),
		gemm("tn_n", 32, 16, 250e3),
	}
	mlp = []kernel{
		norm(60e3),
		gemm("tn_n", 32, 64, 700e3),
		simple("void at::native::elementwise_kernel<128, 4, silu_mul>", "at::native::elementwise_kernel", 16384, 1, 90e3, workTokens),
		gemm("tn_n", 32, 17, 650e3),
	}
	mlpBack = []kernel{
		gemm("nn_n", 32, 64, 650e3),
		gemm("nt_n", 64, 64, 650e3),
		simple("void at::native::elementwise_kernel<128, 4, silu_mul_backward>", "at::native::elementwise_kernel_backward", 16384, 1, 130e3, workTokens),
		gemm("nn_n", 32, 17, 700e3),
		gemm("nt_n", 64, 17, 700e3),
		simple("void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<c10::BFloat16, float>", "at::native::layer_norm_grad_input_kernel", 4096, 1, 90e3, workTokens),
	}
	attentionBack = []kernel{
		gemm("nn_n", 32, 16, 250e3),
		gemm("nt_n", 16, 16, 250e3),
		simple("void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8>>", "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", 32, 32, 1000e3, workPairs),
		gemm("nn_n", 32, 48, 500e3),
		gemm("nt_n", 48, 48, 500e3),
		simple("void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<c10::BFloat16, float>", "at::native::layer_norm_grad_input_kernel", 4096, 1, 90e3, workTokens),
	}
	router      = []kernel{simple("void moe::topk_gating_softmax_kernel<float, 64>", "moe::topk_gating_softmax_kernel", 1024, 1, 40e3, workTokens)}
	experts     = []kernel{grouped("fwd_up", 800e3), grouped("fwd_down", 600e3)}
	expertsBack = []kernel{grouped("dgrad", 1400e3), grouped("wgrad", 1400e3)}

	coarseAttention = []kernel{
		simple("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>", "flash_fwd_kernel", 32, 32, 450e3, workPairs),
		gemm("tn_n", 32, 48, 810e3),
	}
	coarseMLP     = []kernel{gemm("tn_n", 32, 64, 1500e3)}
	coarseMLPBack = []kernel{gemm("nn_n", 32, 64, 1460e3), gemm("nt_n", 64, 64, 1460e3)}
	coarseAttBack = []kernel{
		simple("void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8>>", "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", 32, 32, 1000e3, workPairs),
		gemm("nn_n", 32, 48, 1590e3),
	}

	embedding     = []kernel{simple("void at::native::vectorized_gather_kernel<16, long>", "at::native::vectorized_gather_kernel", 4096, 1, 120e3, workTokens)}
	embeddingBack = []kernel{simple("void at::native::embedding_backward_feature_kernel<c10::BFloat16>", "at::native::embedding_backward_feature_kernel", 1024, 1, 200e3, workTokens)}
	loss          = []kernel{
		gemm("tn_n", 32, 250, 900e3),
		simple("void cross_entropy_loss_forward_kernel<float>", "cross_entropy_loss_forward_kernel", 4096, 1, 150e3, workTokens),
	}
	lossBack = []kernel{
		gemm("nn_n", 32, 250, 900e3),
		gemm("nt_n", 250, 16, 900e3),
	}
	optimizer = []kernel{
		simple("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float>>", "at::native::multi_tensor_apply_kernel", 320, 1, 600e3, workNone),
		simple("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<CopyFunctor<float, 2>>", "at::native::multi_tensor_apply_kernel_copy", 320, 1, 200e3, workNone),
	}
	inputs = kernel{name: "Memcpy HtoD (Pinned -> Device)", key: "Memcpy HtoD", nanos: 60e3, copied: 1 << 20}
)

func grouped(pass string, nanos float64) kernel {
	return simple("void cutlass::device_kernel<GroupedGemm_"+pass+">", "cutlass::device_kernel_"+pass, 64, 8, nanos, workExperts)
}

// maxBlocks is how often a grid that grows with tokens can be told apart.
const maxBlocks = 1024

// grids are the texts of a kernel's grid, by how many sixteenths of its usual
// first dimension it has.
func (k *kernel) grids() [maxBlocks / 16]string {
	var out [maxBlocks / 16]string
	for i := range out {
		out[i] = strconv.Itoa(max(1, k.blocks*i/16)) + k.rest
	}
	return out
}

// Functions of collectives.
const (
	fnAllReduce uint8 = iota
	fnAllGather
	fnReduceScatter
	fnAllToAll
	fnSend
	fnRecv
	fns
)

var (
	fnNames = [fns]string{model.AllReduce, model.AllGather, model.ReduceScatter, model.AllToAll, "send", "recv"}
	fnSpans = [fns]string{
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_AllGather_RING_LL", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
		"ncclDevKernel_SendRecv", "ncclDevKernel_SendRecv", "ncclDevKernel_SendRecv",
	}
)
