"""Our own instrument where perftest is not installed: a program over pyverbs."""
