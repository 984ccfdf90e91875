#!/usr/bin/env bash
# Gradescope runs this once, when it builds the autograder: Python 3.11 or newer, and the grader in a folder of its own.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"

new_enough() { command -v "$1" >/dev/null && "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() { for python in python3 python3.13 python3.12 python3.11; do new_enough "$python" && echo "$python" && return; done; return 1; }

if ! python="$(find_python)"; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv || true
  for version in 3.13 3.12 3.11; do
    python="$(find_python)" && break
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "python$version" "python$version-venv" || true
  done
  python="$(find_python)" || { echo "No Python 3.11 or newer could be installed; choose a newer base image."; exit 1; }
fi

"$python" -m venv "$root/grader"
tested="$root/source/constraints.txt"
"$root/grader/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$tested" uv
# uv knows where torch's CPU build is; the other one brings gigabytes of CUDA, for a container without a GPU.
# ipywidgets, and with it IPython: a learner's cell may import them, and is to run here as it ran there.
"$root/grader/bin/python" -m uv pip install --quiet --torch-backend cpu --constraint "$tested" "$root"/source/*.whl ipywidgets<< libraries >>
"$root/grader/bin/grader" --version
