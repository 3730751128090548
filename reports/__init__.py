"""Frames in, pages and figures out.

``content`` gathers what is said, ``figures`` draws it, ``page`` makes HTML of both with
``templates``; ``tables`` writes the same numbers beside it.
"""
