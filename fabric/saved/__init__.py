"""Fabrics from saved outputs: a folder a device, a file a command."""
