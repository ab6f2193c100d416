// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
)

// maxNamed bounds the paths that a status names.
const maxNamed = 64

var errMore = fmt.Errorf("more than %d paths cannot be read; the others are not named", maxNamed)

// List gathers why paths cannot be read, each reason once. The zero value is empty.
type List struct {
	all  []error
	seen map[string]bool
}

// Add adds an error, or each of those that were joined; nil adds nothing. Beyond 64 it adds only that
// there are more.
func (l *List) Add(err error) {
	for _, err := range parts(err) {
		switch {
		case l.seen[err.Error()] || len(l.all) > maxNamed:
			continue
		case len(l.all) == maxNamed:
			err = errMore
		}
		if l.seen == nil {
			l.seen = map[string]bool{}
		}
		l.seen[err.Error()] = true
		l.all = append(l.all, err)
	}
}

// Err returns all errors as one; nil where there is none.
func (l *List) Err() error { return errors.Join(l.all...) }

// parts returns the errors that were joined.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
	}
	return all
}
