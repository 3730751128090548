"""Frames in, pictures out; which columns a picture takes is said by its function."""
