#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a pair of begin and end of a scope costs from Python, with the library and
# without; and what the hook of modules, and a fingerprint of parameters cost, where
# PyTorch is there.
# Needs gcc, make, python3 and a file system in memory.
#   PYTHON names an interpreter, SAMPLES how many samples of 500 pairs are taken.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "no $python: skipped"; exit 0; }
make -s inject
dir=$(mktemp -d "${RING_DIR:-/dev/shm}/scope-cost-XXXXXX")
trap 'rm -rf "$dir"' EXIT
export PYTHONPATH=$PWD/inject/python LOCKSTEP_DIR=$dir
unset NCCL_PROFILER_PLUGIN CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH
LOCKSTEP_LIBRARY=$PWD/bin/libnccl-profiler-lockstep.so LOCKSTEP_RING_LANES=2 LOCKSTEP_RING_RECORDS=65536 "$python" bench/scope/cost.py
LOCKSTEP_LIBRARY= "$python" bench/scope/cost.py
LOCKSTEP_LIBRARY=$PWD/bin/libnccl-profiler-lockstep.so "$python" bench/scope/modules.py
LOCKSTEP_LIBRARY=$PWD/bin/libnccl-profiler-lockstep.so "$python" bench/scope/fingerprint.py
