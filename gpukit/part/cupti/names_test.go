// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNestedName_NamesOfPyTorch_AreThoseOfTheRing(t *testing.T) {
	for shown, want := range map[string]string{
		"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)": "at::native::vectorized_elementwise_kernel",
		"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<4>, float const*>(float const*)":                         "at::native::multi_tensor_apply_kernel",
		// An operator's brackets within arguments, and a type that is returned.
		"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, (bool)1>(cublasGemvParamsEx<int>)": "internal::gemvx::kernel",
		"at::cuda::(anonymous namespace)::spin_kernel(long)":                                                              "at::cuda::spin_kernel",
		"nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT":                                                                       "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT",
		"cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8":                                            "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_3",
		"_ZN2at4cuda40_GLOBAL__N__758183f4_8_Sleep_cu_088d913f11spin_kernelEl":                                            "at::cuda::spin_kernel",
		"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfE#0a1b2c":                                "at::native::vectorized_elementwise_kernel",
		// Cut within its arguments, as a long name is.
		"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128#0a1b2c": "pytorch_flash::flash_fwd_kernel",
	} {
		assert.Equal(t, want, nestedName(shown))
	}
}
