"""Our speed beside our peers', measured alternately in one run."""
