// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ckpt

import "errors"

// Hole is not known here.
func (f dirFile) Hole() (int64, error) { return 0, errors.ErrUnsupported }
