#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a built part, or takes it from the cache that all checkouts of a user share:
#
#   scripts/cached.sh PATH KEY COMMAND...
#
# PATH becomes a link to the part. COMMAND makes the part at the path that it gets as
# the variable OUT, a file or a folder. KEY is a text that names what the part depends on:
# contents of lock files, versions. The Go version and its settings, the architecture, the
# command and scripts/parts.sh, which has the flags, are part of the key without being named.
#
# The cache is ${XDG_CACHE_HOME:-~/.cache}/lockstep/parts. Entries that no call has named
# for 30 days are removed. Two callers at a time wait for each other.
set -euo pipefail

if (($# < 3)); then
	echo "make a part: got $# arguments; want PATH KEY COMMAND..." >&2
	exit 2
fi
path=$1 key=$2
shift 2

if [ -e "$path" ] && [ ! -L "$path" ]; then
	echo "make $path: got a file or folder that this script did not make; want none or a link: move it away (an older Makefile made such)" >&2
	exit 1
fi

name=$(basename "$path")
base=${XDG_CACHE_HOME:-}
[[ $base = /* ]] || base=$HOME/.cache # a relative one is invalid by the XDG specification
cache=$base/lockstep/parts/$name
digest=$( (
	printf '%s\n' "$key" "$*"
	go env GOVERSION GOOS GOARCH GOAMD64 GOARM64 GOFLAGS GOEXPERIMENT CGO_ENABLED
	uname -sm
	cat "$(dirname "$0")/parts.sh"
) | sha256sum | cut -c1-16)
entry=$cache/$digest

mkdir -p "$cache" "$(dirname "$path")"
exec 9>"$cache/.lock"
flock 9
# A Python environment is dead without the interpreter that made it.
python=$entry/$name/bin/python
if [ ! -e "$entry/complete" ] || [ ! -e "$entry/$name" ] || { [ -L "$python" ] && ! "$python" -c ''; }; then
	rm -rf "$entry"
	mkdir "$entry"
	# At its final place from the start: a virtual environment knows its own path.
	if ! OUT=$entry/$name "$@" || [ ! -e "$entry/$name" ]; then
		rm -rf "$entry"
		echo "make $path: $* failed" >&2
		exit 1
	fi
	touch "$entry/complete"
fi
touch "$entry"
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
if [ "$(readlink "$path" 2>/dev/null)" != "$entry/$name" ]; then
	# In one step: programs of this checkout may be using the path.
	ln -sfn "$entry/$name" "$path.new"
	mv -T "$path.new" "$path"
fi
