#!/usr/bin/env bash
# Makes .venv with everything that PAISoar and its tests need, from what the
# machine has. Installs system packages only as root; otherwise it says which.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
python=""
for candidate in "${PYTHON:-}" python3.11 python3; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
        python=$(command -v "$candidate")
        break
    fi
done
[ -n "$python" ] || packages+=(python3)
if [ -z "$python" ] || ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    packages+=(python3-venv)
fi
command -v ssh >/dev/null || packages+=(openssh-client)
command -v unshare >/dev/null || packages+=(util-linux)
command -v ip >/dev/null || packages+=(iproute2)

if [ "${#packages[@]}" -gt 0 ]; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        echo "setup: installing ${packages[*]}" >&2
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
    else
        echo "setup: missing system packages. As root, run:" >&2
        echo "    apt-get update && apt-get install -y ${packages[*]}" >&2
        exit 3
    fi
    [ -n "$python" ] || python=$(command -v python3)
    "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
        echo "setup: PAISoar needs Python 3.11; this machine's python3 is $("$python" --version). Set PYTHON=/path/to/python3.11." >&2
        exit 3
    }
fi

if ! .venv/bin/python -c '' 2>/dev/null; then
    rm -rf .venv
    "$python" -m venv .venv
fi
echo "setup: installing Python packages into .venv (a few minutes the first time)" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
touch .venv/.ready
