"""Ansible content that configures; measured by validation, never by itself."""
