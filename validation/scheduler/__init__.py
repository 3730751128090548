"""What schedulers ask the gate by: their host lists, and the files that tie them to it."""
