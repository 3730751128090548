"""One module a contender: what its processes do. Peers' need NumPy and the peer alone."""
