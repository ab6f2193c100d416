#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs go generate and fails where that changes or adds a file.
set -euo pipefail
cd "$(dirname "$0")/.."

before=$(mktemp)
after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT

snapshot() {
	git ls-files -z --cached --others --exclude-standard | xargs -0 sha256sum
}

snapshot >"$before"
go generate ./...
snapshot >"$after"
if ! diff "$before" "$after"; then
	echo "generated component metadata was stale: commit what 'make generate' wrote" >&2
	exit 1
fi
echo "component metadata agrees with metadata.yaml"
