#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a built part, or takes it from the cache that all checkouts of a user share:
#
#   scripts/cached.sh PATH KEY COMMAND...
#
# PATH becomes a link to the part. COMMAND makes the part at the path that it gets as
# the variable OUT, a file or a folder. KEY is a text that names everything the part
# depends on beside the Go version, the architecture and the command itself: contents
# of lock files, flags, versions.
#
# The cache is ${XDG_CACHE_HOME:-~/.cache}/lockstep; of each part the three entries last
# used are kept. Two callers at a time wait for each other.
set -euo pipefail

path=$1 key=$2
shift 2

name=$(basename "$path")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep/parts/$name
digest=$( (
	printf '%s\n' "$key" "$*"
	uname -sm
	go version
) | sha256sum | cut -c1-16)
entry=$cache/$digest

mkdir -p "$cache" "$(dirname "$path")"
exec 9>"$cache/.lock"
flock 9
if [ ! -e "$entry/complete" ]; then
	rm -rf "$entry"
	mkdir "$entry"
	# At its final place from the start: a virtual environment knows its own path.
	if ! OUT=$entry/$name "$@"; then
		rm -rf "$entry"
		echo "make $path: $* failed" >&2
		exit 1
	fi
	touch "$entry/complete"
fi
touch "$entry"
# Least recently used first, all but the last three.
find "$cache" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -n | head -n -3 | cut -d' ' -f2- |
	xargs -r -d '\n' rm -rf
rm -rf "$path"
ln -s "$entry/$name" "$path"
