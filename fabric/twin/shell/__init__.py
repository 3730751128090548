"""An emulated Linux shell, for switches whose command line is one.

It runs no process: programs are functions, and what bash would not find is not found.
"""
