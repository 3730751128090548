"""Names of ports, as ``fabric.yaml`` may write them.

Each switch's module says which names it gives its front ports; Linux says what it
calls any interface. A name is written as the system itself writes it, so that one
port has one name everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# IFNAMSIZ of include/uapi/linux/if.h is 16, with the NUL behind the name.
MAX_KERNEL_NAME = 15
# The kernel (dev_valid_name of net/core/dev.c) refuses blanks, ``/``, ``:``, ``.`` and
# ``..``; what else a shell would read is nobody's name.
_KERNEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_LEADING_ZERO = re.compile(r"(?<!\d)0\d")


def front_port(
    text: str, name_of: Callable[[str], str], is_physical: Callable[[str], bool], example: str
) -> str:
    """The system's own name of the front port that ``text`` means.

    ``name_of`` makes the long name of a short one, ``is_physical`` knows a front port's.
    ValueError, with the ``example``, where the text means none.
    """
    name = name_of(text)
    if not text.isascii() or not is_physical(name) or _LEADING_ZERO.search(name):
        raise ValueError(f"{text!r} names no port of this system; one looks like {example}")
    return name


def kernel_name(text: str) -> str:
    """The name of a Linux interface. ValueError where the kernel takes no such name."""
    if not _KERNEL.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a Linux interface; one looks like ens1f0")
    if len(text) > MAX_KERNEL_NAME:
        raise ValueError(
            f"{text!r} is longer than the {MAX_KERNEL_NAME} characters of a Linux interface's name"
        )
    return text
