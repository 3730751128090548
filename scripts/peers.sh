#!/usr/bin/env bash
# Makes .venv-peers with what `paisoar bench` compares us with: Open MPI with
# mpi4py, and PyTorch's CPU build for gloo. System packages only as root.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        echo "peers: installing openmpi-bin libopenmpi-dev" >&2
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            openmpi-bin libopenmpi-dev >/dev/null
    else
        echo "peers: without Open MPI. As root: apt-get install -y openmpi-bin libopenmpi-dev" >&2
    fi
fi
[ -x .venv-peers/bin/python ] || .venv/bin/python -m venv .venv-peers
pip=(.venv-peers/bin/python -m pip --disable-pip-version-check)
# The newest CPU build that is on offer: the other builds bring gigabytes of GPU libraries.
torch=$("${pip[@]}" index versions torch 2>/dev/null | tr -d ',' | tr ' ' '\n' | grep -m1 '+cpu$' || true)
echo "peers: installing mpi4py and torch${torch:+ $torch}" >&2
"${pip[@]}" install --quiet -c constraints.txt numpy "torch${torch:+==$torch}"
if command -v mpicc >/dev/null; then
    "${pip[@]}" install --quiet -c constraints.txt mpi4py
fi
touch .venv-peers/.ready
