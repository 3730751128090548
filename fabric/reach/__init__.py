"""Reaching devices: addresses and credentials, sessions over SSH, reading many at once."""
