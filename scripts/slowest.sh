#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the slowest tests of a run, in seconds. A test whose subtests run in parallel
# counts as its slowest subtest.
#
#   make test GOTESTFLAGS='-count=1 -json' | scripts/slowest.sh [NUMBER]
set -euo pipefail

number=${1:-30}
awk '
	function value(name,    m) {
		return match($0, "\"" name "\":(\"[^\"]*\"|[0-9.]+)") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) : ""
	}
	/"Action":"(pass|fail)"/ && /"Test":/ {
		package = value("Package"); gsub(/"/, "", package); sub(/^[^\/]*\/[^\/]*\/[^\/]*\//, "", package)
		test = value("Test"); gsub(/"/, "", test); sub(/\/.*/, "", test)
		seconds = value("Elapsed") + 0
		name = package " " test
		if (seconds > slowest[name]) slowest[name] = seconds
	}
	END { for (name in slowest) printf "%7.1f  %s\n", slowest[name], name }
' | sort -rn | awk -v n="$number" 'NR <= n'
