// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxClockName is the most bytes that the name of a clock may have: names come from
// elsewhere, are kept for minutes, and become attributes of metrics.
const MaxClockName = 256

// CheckClockName says whether a name can be a clock's.
func CheckClockName(name string) error {
	if name == "" {
		return errors.New("got no name; want a clock's")
	}
	return checkName(name, MaxClockName)
}

// maxTimeline is what the name of a timeline has beside that of its clock.
const maxTimeline = 64

// CheckTimelineName says whether a name can be a timeline's.
func CheckTimelineName(name string) error {
	if name == "" {
		return errors.New("got no name; want a timeline's")
	}
	return checkName(name, MaxClockName+maxTimeline)
}

func checkName(name string, limit int) error {
	switch {
	case len(name) > limit:
		return fmt.Errorf("got a name of %d bytes, %.40q...; want at most %d", len(name), name, limit)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("got %.80q; want UTF-8 without control characters", name)
	}
	return nil
}
