"""Runs as they are kept: the database, the evidence beside it, and both read back."""
