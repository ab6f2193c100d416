// SPDX-License-Identifier: Apache-2.0

package kernelname

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNames(t *testing.T) {
	tests := []struct{ raw, text, key string }{
		{
			"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int, at::native::FillFunctor<float>)",
			"at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >",
			"at::native::vectorized_elementwise_kernel",
		},
		{
			"void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>(float*, int)",
			"at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>",
			"at::native::cunn_SoftMaxForward",
		},
		{"ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn", "ampere_sgemm_tn"},
		{"ampere_sgemm_32x128_tn", "ampere_sgemm_32x128_tn", "ampere_sgemm_tn"},
		{
			"sm80_xmma_gemm_f32f32_tn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
			"sm80_xmma_gemm_f32f32_tn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
			"sm80_xmma_gemm_f32f32_tn_n_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
		},
		{"triton_poi_fused_add_relu_3", "triton_poi_fused_add_relu_3", "triton_poi_fused_add_relu"},
		{"triton__0d1d2de", "triton__0d1d2de", "triton_"},
		{"12", "12", "12"},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.text, Shown(tt.raw), tt.raw)
		assert.Equal(t, tt.key, Key(tt.raw), tt.raw)
	}
}

// Names of templated libraries may differ only beyond the bound.
func TestNames_LongWithOnePrefix_StayDistinct(t *testing.T) {
	prefix := strings.Repeat("long_", 100)
	for what, of := range map[string]func(string) string{"Clip": Clip, "Shown": Shown, "Key": Key} {
		a, b := of(prefix+"add"), of(prefix+"mul")
		assert.NotEqual(t, a, b, what)
		assert.LessOrEqual(t, len(a), MaxBytes, what)
		assert.Equal(t, prefix[:200], a[:200], what)
		assert.Equal(t, a, of(a), what)
	}
	assert.Equal(t, Key(prefix+"gemm_128x64_tn"), Key(prefix+"gemm_32x32_tn"), "tile sizes are no part of it")
}
