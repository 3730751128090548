"""Models to train and to measure with."""
