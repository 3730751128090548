"""How bytes get from one rank to the next: shared memory within a host, TCP between hosts."""
