#!/usr/bin/env bash
# Runs the jobs of this folder anew, or those named, and keeps their dumps beside their
# scripts. PYTHON names an interpreter that has PyTorch. The jobs run below /tmp/job,
# with PyTorch linked into it, so that call stacks speak of no other folder.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
python=${PYTHON:-$here/../../.venv/bin/python}
work=/tmp/job
packages=$("$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')

jobs=("$@")
[[ $# -gt 0 ]] || jobs=(*/)
for job in "${jobs[@]%/}"; do
	rm -rf "$work"
	mkdir -p "$work/out"
	cp -r job.py run.py "$job" "$work"
	rm -rf "$work/$job/dumps"
	ln -s "$packages" "$work/packages"
	ranks=$(sed -n 's/.*"world_size": *\([0-9]*\).*/\1/p' "$job/truth.json")
	json=
	[[ $job != *_json ]] || json=1
	bare=
	[[ $job != healthy && $job != *_bare ]] || bare=1
	# The first dump of a process with stacks is written seconds after it was taken. Of what
	# only stands still, a dump that comes no later than that does not say that it does.
	wait=5
	case $job in stuck_* | send_unreceived) wait=20 ;; esac
	(cd "$work" && JSON=$json BARE=$bare WAIT=$wait PYTHONPATH=$work/packages PYTHONDONTWRITEBYTECODE=1 \
		"$python" run.py "$job" "$ranks" "$work/out")
	rm -rf "$here/$job/dumps"
	mkdir "$here/$job/dumps"
	cp "$work"/out/rank_* "$here/$job/dumps"
	cp "$work/out/seen.json" "$here/$job"
done
rm -rf "$work"
