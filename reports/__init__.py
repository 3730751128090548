"""Frames in, pages and figures out."""
