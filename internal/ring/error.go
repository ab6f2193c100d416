// SPDX-License-Identifier: Apache-2.0

package ring

import "fmt"

// Error says which file was refused, for which field, and what was wanted.
type Error struct {
	Path  string
	Field string // of the header, or what was asked of the operating system
	Got   string
	Want  string
	Err   error // of the operating system; nil where the content was at fault
}

func (e *Error) Error() string {
	return fmt.Sprintf("read ring %s: %s: got %s; want %s", e.Path, e.Field, e.Got, e.Want)
}

// Unwrap returns the error of the operating system, if any.
func (e *Error) Unwrap() error { return e.Err }

func refuse(path, field string, got, want any) *Error {
	return &Error{Path: path, Field: field, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
}

func failed(path, field string, err error, want string) *Error {
	return &Error{Path: path, Field: field, Got: err.Error(), Want: want, Err: err}
}
