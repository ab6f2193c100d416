// SPDX-License-Identifier: Apache-2.0

package inspector

import "fmt"

// Reason is why a line, or something in it, was not used; a value for counters.
type Reason string

// The reasons.
const (
	// The whole line is left out.
	Cut            Reason = "cut"             // without an end: its writer died, or its file was cut
	TooLong        Reason = "too_long"        // longer than the limit
	NotJSON        Reason = "not_json"        // no JSON object
	NotInspector   Reason = "not_inspector"   // an object of none of the kinds of lines
	UnknownVersion Reason = "unknown_version" // of a format that is not known
	NoContext      Reason = "no_context"      // without a header, and no line before lends one
	BadHeader      Reason = "bad_header"      // header or metadata that can not be true
	BadValue       Reason = "bad_value"       // a required value that can not be true
	// The line is used, and something is amiss.
	Gap     Reason = "gap"      // bytes that were cut out of the file
	BadTime Reason = "bad_time" // stamps that can not be true: the operation has no span
	BadRate Reason = "bad_rate" // a bandwidth that can not be true: left out
	Short   Reason = "short"    // fewer lines than a dump announced
)

// Fault is one thing that is wrong with a line.
type Fault struct {
	Reason Reason
	Place  Place
	Lines  int64 // that are missing for it
	What   string
}

// String renders the fault as one line.
func (f *Fault) String() string {
	return fmt.Sprintf("line %d, offset %d: %s", f.Place.Number, f.Place.Offset, f.What)
}

// Lost is how many lines the fault cost.
func (f *Fault) Lost() int64 {
	switch f.Reason {
	case Gap, BadTime, BadRate:
		return 0
	case Short:
		return f.Lines
	}
	return 1
}

func fault(r Reason, format string, args ...any) *Fault {
	return &Fault{Reason: r, What: fmt.Sprintf(format, args...)}
}

// shown bounds what is told of a text.
func shown[T string | []byte](s T) string {
	const limit = 48
	if len(s) > limit {
		return fmt.Sprintf("%q...", s[:limit])
	}
	return fmt.Sprintf("%q", s)
}
