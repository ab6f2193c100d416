#!/usr/bin/env bash
# Writes the collector sources that builder-config.yaml describes into
# distro/, or with --check into a temporary sibling of it and compares.
#
# The sibling stands in the repository root because the manifest's replace
# line (../) is relative to the generated go.mod. It starts from the committed
# go.sum, so that known modules are verified against that and not looked up.
set -euo pipefail
cd "$(dirname "$0")/.."

builder=${BUILDER:-bin/builder}
out=distro
[ "${1:-}" = --check ] && out=.distro-check

config=$(mktemp)
trap 'rm -f "$config"; rm -rf .distro-check' EXIT
rm -rf .distro-check
mkdir -p "$out"
if [ "$out" != distro ]; then
	cp distro/go.sum "$out/"
fi
sed "s#^\( *output_path:\) .*#\1 ./$out#" builder-config.yaml >"$config"

# The builder's log is only of interest when it fails.
if ! log=$("$builder" --config "$config" --skip-compilation --skip-strict-versioning=false 2>&1); then
	printf '%s\n' "$log" >&2
	exit 1
fi

if [ "$out" != distro ]; then
	if ! diff -r --exclude config --exclude otelcol-lockstep distro "$out"; then
		echo "distro/ differs from what builder-config.yaml and go.mod yield: run 'make generate'" >&2
		exit 1
	fi
	echo "distro/ agrees with builder-config.yaml"
fi
