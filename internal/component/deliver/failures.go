// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"reflect"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
)

// failures is what an error reports of the branches that failed.
type failures struct {
	// branches has one error of each: the one that carries what was refused, or the innermost.
	branches []error
	// permanent: no branch would take the data another time.
	permanent bool
}

// permanentType is the type of an error that is permanent itself, and not by one that it wraps.
var permanentType = reflect.TypeOf(consumererror.NewPermanent(errors.New("")))

func failuresOf(err error) failures {
	if isPartial(err) { // whatever is in it, it speaks for its branch
		return failures{branches: []error{err}, permanent: consumererror.IsPermanent(err)}
	}
	var f failures
	switch e := err.(type) { //nolint:errorlint // one error of the tree is looked at
	case interface{ Unwrap() []error }:
		f = join(e.Unwrap())
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			f = failuresOf(inner)
		}
	}
	if len(f.branches) == 0 {
		f.branches = []error{err}
	}
	f.permanent = f.permanent || reflect.TypeOf(err) == permanentType
	return f
}

// IsPermanent reports whether no branch of the next component would take the data another time.
func IsPermanent(err error) bool { return failuresOf(err).permanent }

// join adds up the failures of branches.
func join(errs []error) (all failures) {
	all.permanent = len(errs) > 0
	for _, err := range errs {
		f := failuresOf(err)
		all.branches = append(all.branches, f.branches...)
		all.permanent = all.permanent && f.permanent
	}
	return all
}

// RefusedLogs returns the records that a next component refused, of so many that it was given; false where it
// refused all of them, or several branches failed.
func RefusedLogs(err error, given int) (plog.Logs, bool) {
	f := failuresOf(err)
	return part(&f, &signal[plog.Logs]{count: plog.Logs.LogRecordCount, refused: refusedLogs}, given)
}

func isPartial(err error) bool {
	switch err.(type) { //nolint:errorlint // one error of the tree is looked at
	case consumererror.Traces, consumererror.Logs, consumererror.Metrics:
		return true
	}
	return false
}

// part returns the part of the given data that was refused; false where it is everything,
// or differs between branches. More than was given is another component's data.
func part[T any](f *failures, s *signal[T], given int) (refused T, ok bool) {
	if len(f.branches) != 1 {
		return refused, false
	}
	refused, ok = s.refused(f.branches[0])
	return refused, ok && s.count(refused) > 0 && s.count(refused) <= given
}
