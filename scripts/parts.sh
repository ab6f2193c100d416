#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes one part at $OUT; the Makefile calls it through scripts/cached.sh.
#
#   parts.sh tool PACKAGE        a Go program of tools/go.mod
#   parts.sh jaeger              Jaeger, of e2e/jaeger/go.mod
#   parts.sh kafka               the jars of a Kafka broker, of e2e/kafka/pom.xml
#   parts.sh venv REQUIREMENT... a Python environment
#   parts.sh cupti WHEEL...      NVIDIA's libraries as their packages have them, a folder a version;
#                                they load without a driver and a GPU
set -euo pipefail
cd "$(dirname "$0")/.."

part=$1
shift
case $part in
tool)
	cd tools
	go build -trimpath -o "$OUT" "$1"
	;;
jaeger)
	cd e2e/jaeger
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$OUT" github.com/jaegertracing/jaeger/cmd/jaeger
	;;
kafka)
	mvn --quiet --batch-mode -f e2e/kafka/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$OUT"
	;;
venv)
	python3 -m venv "$OUT"
	"$OUT/bin/pip" install --quiet --no-cache-dir "$@"
	;;
cupti)
	mkdir -p "$OUT/wheels"
	python3 -m pip download --quiet --no-deps --dest "$OUT/wheels" "$@"
	for requirement in "$@"; do
		version=${requirement#*==}
		python3 -m zipfile -e "$OUT"/wheels/*-"$version"-*.whl "$OUT/$version"
	done
	;;
*)
	echo "make part: got $part; want tool, jaeger, kafka, venv or cupti" >&2
	exit 2
	;;
esac
