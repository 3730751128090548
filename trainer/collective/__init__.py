"""Collectives between the ranks of one job: ring allreduce, broadcast, allgather, barrier."""
