#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles a collector whose sources the builder has written:
#
#   scripts/distro.sh MANIFEST FOLDER PROGRAM
#
# The program is static and has neither symbol tables nor paths of this machine. Its
# version is the manifest's with the commit and the commit's date as build metadata: the
# generated main.go is compiled with that one constant replaced.
set -euo pipefail
cd "$(dirname "$0")/.."

manifest=$1 folder=$2 program=$(realpath -m "$3")
tags=$(sed -n 's/^ *build_tags: *//p' "$manifest")

overlay=$(mktemp -d)
trap 'rm -rf "$overlay"' EXIT
stamp=
if commit=$(git rev-parse --short=12 HEAD 2>/dev/null); then
	# In UTC and with files that git does not track, as the go command stamps programs.
	stamp=+$commit.$(TZ=UTC git show -s --date=format-local:%Y-%m-%d --format=%cd HEAD)
	[ -z "$(git status --porcelain)" ] || stamp=$stamp.modified
fi
sed "s/^\(\t\tVersion: *\"[^\"]*\)\"/\1$stamp\"/" "$folder/main.go" >"$overlay/main.go"
main=$(realpath "$folder/main.go")
printf '{"Replace": {"%s": "%s"}}\n' "$main" "$overlay/main.go" >"$overlay/overlay.json"

mkdir -p "$(dirname "$program")"
cd "$folder"
CGO_ENABLED=0 go build -trimpath -buildvcs=false -overlay "$overlay/overlay.json" -ldflags '-s -w' -tags "$tags" -o "$program" .
