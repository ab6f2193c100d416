// SPDX-License-Identifier: Apache-2.0

package ckpt

// Formats that are recognized by the content of a save, as several frameworks share the names of their saves.
const (
	FormatVerl       Format = "verl"
	FormatAccelerate Format = "accelerate" // accelerate.save_state, as of the training scripts of diffusers
	FormatOLMoCore   Format = "olmo_core"
	FormatNanotron   Format = "nanotron"
	FormatLevanter   Format = "levanter"
	FormatLitGPT     Format = "litgpt"
	FormatTorchtune  Format = "torchtune"
	FormatSwift      Format = "ms_swift" // its Megatron trainers
	FormatComposer   Format = "composer"
	FormatAutomodel  Format = "nemo_automodel"
)
