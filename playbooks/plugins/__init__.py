"""Plugins of our playbooks."""
