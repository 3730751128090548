"""Stand-in programs of an emulated host: ``mlnx_qos``, ``ethtool``, ``ip``, ``systemctl``, ...

They behave, print and refuse as the vendors' programs do, over the host's own
folder instead of a kernel. Every module here starts in an interpreter without
site packages for each command that an operator or a playbook runs, so that
nothing may be imported that is slow to import (no dataclasses, json, argparse,
subprocess at module level) and nothing of ``fabric``.
"""
