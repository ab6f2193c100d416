#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints whether anything that a slow check depends on differs from a commit, in the working
# tree: "touched" or "untouched".
#
#   scripts/touched.sh hooks|saves|models [COMMIT]
#   scripts/touched.sh -n hooks|saves|models     prints the paths that it depends on
#
# Without a commit, with one that is no ancestor, or where it cannot be found out: touched.
set -euo pipefail
cd "$(dirname "$0")/.."

only_print=
if [ "${1:-}" = -n ]; then
	only_print=1
	shift
fi
what=${1:-} base=${2:-}

case $what in
hooks) # Each of these programs imports all of the hooks. The Makefile has PyTorch's version.
	paths=(Makefile scripts/parts.sh inject)
	# python_test.go runs the tests in Python.
	mapfile -t others < <(git ls-files -- 'inject/*_test.go' | grep -v -x inject/python/python_test.go)
	but=("${others[@]/#/:!}" ':!inject/*.md' ':!inject/*/test/*' ':!inject/ring_test')
	;;
saves) # What makes saves of PyTorch and of real libraries, and what judges them.
	if ! { module=$(go list -m) && deps=$(go list -deps ./internal/preflight ./internal/ckpt ./internal/ckptsim); }; then
		echo touched
		exit
	fi
	mapfile -t paths < <(sed -n "s#^$module/##p" <<<"$deps")
	paths+=(Makefile go.mod scripts/parts.sh cmd/lockstep e2e/go.mod e2e/testdata/libraries e2e/testdata/killed
		e2e/libraries_test.go e2e/killed_test.go e2e/torch_checkpoint_test.go)
	but=()
	;;
models) # What Spin finds depends on nothing else.
	paths=(docs/models)
	but=()
	;;
*)
	echo "read arguments: got \"$what\"; want hooks, saves or models" >&2
	exit 2
	;;
esac
if [ -n "$only_print" ]; then
	printf '%s\n' "${paths[@]}"
	exit
fi

# untouched reports whether no file of these paths differs, tracked or not.
untouched() {
	local new
	[ -n "$base" ] && git merge-base --is-ancestor "$base" HEAD 2>/dev/null && git diff --quiet "$base" -- "$@" || return 1
	new=$(git ls-files --others --exclude-standard -- "$@") && [ -z "$new" ]
}

if untouched "${paths[@]}" "${but[@]}"; then
	echo untouched
else
	echo touched
fi
