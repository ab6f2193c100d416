// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takes are what flags take, by their types.
var takes = map[string]string{
	"int": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false", "string": "a text",
	"duration": "a time with its unit, such as 30s or 5m",
}

// flagError says what a flag was given and what it takes, in place of what Go's own parsers say.
func flagError(_ *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var none *pflag.ValueRequiredError
	switch {
	case errors.As(err, &value) && takes[value.GetFlag().Value.Type()] != "":
		want := takes[value.GetFlag().Value.Type()]
		if errors.Is(err, strconv.ErrRange) {
			want += " of at most 64 bits"
		}
		return fmt.Errorf("read --%s: got %q; want %s", value.GetFlag().Name, value.GetValue(), want)
	case errors.As(err, &none) && takes[none.GetFlag().Value.Type()] != "":
		return fmt.Errorf("read --%s: got nothing; want %s", none.GetFlag().Name, takes[none.GetFlag().Value.Type()])
	}
	return err
}

// somePaths wants at least one path.
func somePaths(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("got no path; want one or more: %s", cmd.Use)
	}
	return nil
}

// patternFaults are frequent faults of regular expressions.
var patternFaults = map[syntax.ErrorCode]string{
	syntax.ErrMissingParen:          "a ( is not closed",
	syntax.ErrUnexpectedParen:       "a ) closes nothing",
	syntax.ErrMissingBracket:        "a [ is not closed",
	syntax.ErrMissingRepeatArgument: "nothing in front of a *, + or ? that it repeats",
	syntax.ErrTrailingBackslash:     "nothing behind the last \\",
}

// patternError says what is wrong with a regular expression.
func patternError(text string, err error) error {
	why := err.Error()
	var at *syntax.Error
	if errors.As(err, &at) {
		why = cmp.Or(patternFaults[at.Code], at.Code.String())
	}
	return fmt.Errorf("got %q; want a regular expression: %s", text, why)
}
