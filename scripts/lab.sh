#!/usr/bin/env bash
# Brings this machine what `paisoar lab` needs: QEMU, and the tools that unpack the
# guests' kernel. Installs system packages only as root; otherwise it says which.
# The guests' own packages (sshd, perftest, ...) are never installed here: `paisoar lab
# up` unpacks them into its cache.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
command -v qemu-system-x86_64 >/dev/null || packages+=(qemu-system-x86)
PATH="$PATH:/usr/sbin:/sbin" command -v depmod >/dev/null || packages+=(kmod)
command -v setpriv >/dev/null || packages+=(util-linux)
command -v ssh >/dev/null || packages+=(openssh-client)
# The trainer's verbs come from here; guests share the machine's Python environment.
[ -d /usr/lib/python3/dist-packages/pyverbs ] || packages+=(rdma-core ibverbs-providers python3-pyverbs)

if ! command -v apt-get >/dev/null; then
    echo "lab: the guests' kernel and packages are Debian's: this needs Debian or a relative." >&2
    exit 3
fi
if [ "${#packages[@]}" -gt 0 ]; then
    if [ "$(id -u)" -ne 0 ]; then
        echo "lab: missing system packages. As root, run:" >&2
        echo "    apt-get update && apt-get install -y --no-install-recommends ${packages[*]}" >&2
        exit 3
    fi
    echo "lab: installing ${packages[*]}" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
elif ! apt-cache policy linux-image-amd64 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    if [ "$(id -u)" -ne 0 ]; then
        echo "lab: apt knows no linux-image-amd64. As root, run: apt-get update" >&2
        exit 3
    fi
    apt-get update -qq
fi
.venv/bin/python scripts/link_pyverbs.py >&2
