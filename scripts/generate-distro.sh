#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes the collectors' sources from their manifests: distro/ from builder-config.yaml and
# distro/agent/ from builder-config-agent.yaml. With --check it writes them into temporary
# siblings and compares.
#
# A sibling is needed because a manifest's replace line is relative to the generated go.mod.
# It starts from the committed go.sum, so that known modules are verified against that and
# are not looked up.
set -euo pipefail
cd "$(dirname "$0")/.."

builder=$(realpath "${BUILDER:-bin/builder}")
work=$(mktemp -d)
trap 'rm -rf "$work" .distro-check distro/.agent-check' EXIT

# generate MANIFEST FOLDER writes the sources into FOLDER.
generate() {
	sed "s#^\( *output_path:\) .*#\1 ./$2#" "$1" >"$work/config.yaml"
	# The builder's log is only of interest when it fails.
	if ! "$builder" --config "$work/config.yaml" --skip-compilation --skip-strict-versioning=false >"$work/log" 2>&1; then
		cat "$work/log" >&2
		return 1
	fi
}

# check MANIFEST FOLDER SIBLING compares FOLDER with what MANIFEST yields.
check() {
	rm -rf "$3"
	mkdir -p "$3"
	cp "$2/go.sum" "$3/"
	generate "$1" "$3"
	if ! diff -r --exclude config --exclude agent --exclude .agent-check "$2" "$3"; then
		echo "$2 differs from what $1 yields: run 'make generate'" >&2
		return 1
	fi
	echo "$2 agrees with $1"
}

if [ "${1:-}" = --check ]; then
	check builder-config.yaml distro .distro-check
	check builder-config-agent.yaml distro/agent distro/.agent-check
else
	generate builder-config.yaml distro
	generate builder-config-agent.yaml distro/agent
fi
