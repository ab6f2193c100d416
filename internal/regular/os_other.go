// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package regular

import "os"

const flags = os.O_RDONLY

func ofKernel(*os.File) bool { return false }
