// SPDX-License-Identifier: Apache-2.0

// Command parse is Lockstep's side of the parser comparison in bench/parse.sh,
// and its umpire.
//
//	parse read FILE              reads one trace and prints counts, as parse.py does
//	parse compare [flags] FILE   runs both, alternating, and prints what they took
package main
