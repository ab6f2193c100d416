// SPDX-License-Identifier: Apache-2.0

package ckpt

// Formats of frameworks whose saves are told by what lies in them, as several share their names.
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
