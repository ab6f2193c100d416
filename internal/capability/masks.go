// SPDX-License-Identifier: Apache-2.0

package capability

// Mask is what is asked of an NCCL release by default: by level, the number that
// inject/nccl/mask.c writes where NCCL looks.
type Mask struct {
	ABI                       int
	NCCL                      string // releases that speak it as their newest
	Summary, Collectives, All int
}

// Masks by version of the profiler interface.
var Masks = []Mask{
	{1, "2.23", 0x000e, 0x001e, 0x001e},
	{2, "2.24, 2.25", 0x000e, 0x001e, 0x001e},
	{3, "2.26", 0x004e, 0x005e, 0x00de},
	{4, "2.27", 0x004e, 0x005e, 0x00de},
	{5, "2.28", 0x004e, 0x005e, 0x0fde},
	{6, "2.29, 2.30", 0x104e, 0x105e, 0x7fde},
	{7, "2.31 and later", 0x104e, 0x105e, 0xffde},
}
