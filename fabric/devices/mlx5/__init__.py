"""NVIDIA ConnectX and BlueField NICs with the mlx5 driver."""

from fabric.devices.mlx5.family import Mlx5Family

FAMILY = Mlx5Family()
