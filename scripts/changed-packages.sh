#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the packages of the root module that differ from a commit, then those that
# import one of them directly, also from their tests; each once, one a line:
#
#   scripts/changed-packages.sh [-d] COMMIT
#
# A file that is no Go source counts for the nearest folder above it that is a package: C
# sources, recordings, metadata. Where COMMIT is empty or no ancestor, all are printed, and
# where go.mod or testdata/ of the root has changed. With -d, only packages whose own files
# differ.
set -euo pipefail
cd "$(dirname "$0")/.."

direct=
if [ "${1:-}" = -d ]; then
	direct=1
	shift
fi
base=${1:-}

# import path, folder, then what it and its tests import
packages=$(go list -f '{{.ImportPath}} {{.Dir}}{{range .Imports}} {{.}}{{end}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}' ./...)

all() {
	cut -d' ' -f1 <<<"$packages"
	exit 0
}

[ -n "$base" ] || all
git merge-base --is-ancestor "$base" HEAD 2>/dev/null || all
files=$(git diff --name-only "$base" -- .; git ls-files --others --exclude-standard)
if [ -z "$direct" ] && grep -q -E '^(go\.mod|go\.sum|testdata/.*)$' <<<"$files"; then
	all
fi

awk -v root="$PWD" -v direct="$direct" '
	NR == FNR {
		folder[$2] = $1
		order[++n] = $1
		for (i = 3; i <= NF; i++) imports[$1] = imports[$1] " " $i
		next
	}
	{
		path = root "/" $0
		# Nearest package at or above the file, below the root.
		while (sub("/[^/]*$", "", path) && length(path) > length(root)) {
			if (path in folder) { changed[folder[path]] = 1; break }
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
