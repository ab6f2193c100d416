#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the packages of the root module that differ from a commit, then those that
# import one of them directly, also from their tests; each once, one a line:
#
#   scripts/changed-packages.sh [-d] COMMIT
#
# A file that is no Go source counts for the nearest folder above it that is a package,
# such as recordings and metadata; one below inject/ or demo/ counts for every package
# whose tests build C through internal/cbuild, too. Where COMMIT is empty or no ancestor,
# all are printed, and where go.mod or testdata/ of the root has changed. With -d, only
# packages whose own files differ.
set -euo pipefail
cd "$(dirname "$0")/.."

direct=
if [ "${1:-}" = -d ]; then
	direct=1
	shift
fi
base=${1:-}

module=$(go list -m)
# a package, then what it and its tests import
packages=$(go list -f '{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}' ./...)

all() {
	cut -d' ' -f1 <<<"$packages"
	exit 0
}

[ -n "$base" ] || all
git merge-base --is-ancestor "$base" HEAD 2>/dev/null || all
# Both names of a file that was moved.
changed=$(git -c core.quotePath=off diff --no-renames --name-only "$base" -- .)
added=$(git -c core.quotePath=off ls-files --others --exclude-standard)
files=$changed$'\n'$added
if [ -z "$direct" ] && grep -q -E '^(go\.mod|go\.sum|testdata/.*)$' <<<"$files"; then
	all
fi

awk -v module="$module" -v direct="$direct" '
	NR == FNR {
		fields = split($0, field, " ")
		order[++n] = field[1]
		known[field[1]] = 1
		for (i = 2; i <= fields; i++) {
			imports[field[1]] = imports[field[1]] " " field[i]
			if (field[i] == module "/internal/cbuild") builds[field[1]] = 1
		}
		next
	}
	$0 == "" { next }
	/^(inject|demo)\// && !/\.go$/ { for (p in builds) changed[p] = 1 }
	{
		path = $0
		# Nearest package at or above the file, below the root.
		while (sub("/[^/]*$", "", path)) {
			if ((module "/" path) in known) { changed[module "/" path] = 1; break }
			if (path !~ "/") break
		}
	}
	END {
		for (i = 1; i <= n; i++) if (order[i] in changed) print order[i]
		if (direct != "") exit
		for (i = 1; i <= n; i++) {
			if (order[i] in changed) continue
			count = split(imports[order[i]], list, " ")
			for (j = 1; j <= count; j++) if (list[j] in changed) { print order[i]; break }
		}
	}
' <(printf '%s\n' "$packages") <(printf '%s\n' "$files")
