"""Searching better ECN, DCQCN and buffer settings for a site's traffic, packet by packet."""
