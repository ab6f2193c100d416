#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints size, start time and idle memory of the collectors in bin/, with OTLP received
# and nothing sent: the medians of five starts. Start time is from the start of the
# process to the first answer of its health check; memory is the resident set ten seconds
# after that, once.
set -euo pipefail
cd "$(dirname "$0")/.."

config=$(mktemp --suffix .yaml)
pid=
trap 'rm -f "$config"; [ -z "$pid" ] || kill "$pid" 2>/dev/null || true' EXIT
cat >"$config" <<'YAML'
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:24317"}, http: {endpoint: "127.0.0.1:24318"}}}}
processors: {memory_limiter: {check_interval: 1s, limit_mib: 512}, batch: }
exporters: {debug: }
extensions: {health_check: {endpoint: "127.0.0.1:23133"}}
service:
  extensions: [health_check]
  pipelines: {traces: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [debug]}}
  telemetry: {metrics: {level: none}}
YAML

# ready asks the health check, which answers 200 when the pipelines run.
ready() (
	exec 3<>/dev/tcp/127.0.0.1/23133
	printf 'GET / HTTP/1.0\r\n\r\n' >&3
	read -r _ status _ <&3
	[ "$status" = 200 ]
)

# started runs a collector until it is ready, and prints the milliseconds.
started() {
	local begin
	begin=$(date +%s%N)
	"$1" --config "$config" >/dev/null 2>&1 &
	pid=$!
	until ready 2>/dev/null; do
		kill -0 "$pid" || { echo "start $1: it ended" >&2; exit 1; }
		sleep 0.01
	done
	took=$((($(date +%s%N) - begin) / 1000000))
}

stopped() {
	kill "$pid"
	wait "$pid" || true
	pid=
}

printf '| program | size, MB | start, ms | idle memory, MiB |\n|---|---|---|---|\n'
for program in bin/otelcol-lockstep bin/otelcol-lockstep-agent; do
	times=()
	for _ in 1 2 3 4 5; do
		started "$program"
		times+=("$took")
		stopped
	done
	started "$program"
	sleep 10
	memory=$(awk '/VmRSS/ {print int($2 / 1024 + 0.5)}' "/proc/$pid/status")
	stopped
	printf '| `%s` | %d | %d | %d |\n' "$(basename "$program")" \
		$((($(stat -c %s "$program") + 500000) / 1000000)) \
		"$(printf '%s\n' "${times[@]}" | sort -n | sed -n 3p)" "$memory"
done
