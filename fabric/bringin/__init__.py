"""Bringing an existing site in: from inventories, exports and saved outputs to fabric.yaml."""

from fabric.bringin.read import read_source, read_sources
from fabric.bringin.sources import Source, merged
from fabric.bringin.write import Gap, Written, site_yaml

__all__ = ["Gap", "Source", "Written", "merged", "read_source", "read_sources", "site_yaml"]
