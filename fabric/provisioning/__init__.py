"""Changing devices: plans, carrying them out in batches, what a run leaves, the way back."""
