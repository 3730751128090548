"""Content in, HTML out."""
