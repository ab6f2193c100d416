// SPDX-License-Identifier: Apache-2.0

package kineto

import "fmt"

// ParseError says where in a file, and why, its reading ended.
type ParseError struct {
	File   string
	Offset int64 // bytes of the uncompressed content
	Err    error
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("parse %s: offset %d: %v", e.File, e.Offset, e.Err)
}

func (e *ParseError) Unwrap() error { return e.Err }
