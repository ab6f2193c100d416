#!/usr/bin/env bash
# Runs every fuzz target of the root module for FUZZTIME each (default 10s).
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${FUZZTIME:-10s}
passed=0
while IFS=: read -r file target; do
	package=./$(dirname "$file")
	echo "fuzz $package $target ($fuzztime)"
	# Inputs that cover something new are made smaller by count as well: by time that may
	# take a minute each.
	go test -run '^$' -fuzz "^${target}\$" -fuzztime "$fuzztime" -fuzzminimizetime 100x "$package"
	passed=$((passed + 1))
done < <(git ls-files --cached --others --exclude-standard '*_test.go' |
	grep -v -E '^(tools|e2e|bench|lab|distro)/' |
	xargs -r grep -H -o -E '^func Fuzz[A-Za-z0-9_]+' |
	sed 's/:func /:/')
echo "fuzz targets run: $passed"
