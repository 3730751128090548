"""Packet-level simulation of a RoCEv2 fabric as its devices are configured."""
