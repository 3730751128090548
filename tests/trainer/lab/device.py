"""Open the RDMA device of a guest and register 1 MiB, or print why that cannot be."""

import mmap
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from fabric.errors import PaisoarError
from trainer.collective.settings import NetworkSettings
from trainer.collective.transports.verbs_device import Device, load_verbs


def main():
    try:
        device = Device(load_verbs(), NetworkSettings.from_environment())
        memory = np.frombuffer(mmap.mmap(-1, 1 << 20), dtype=np.uint8)
        device.memory_region(memory, device.verbs.IBV_ACCESS_LOCAL_WRITE).close()
        device.close()
    except PaisoarError as error:
        print(error)
        return
    print("registered")


if __name__ == "__main__":
    main()
