"""From what was seen to verdicts: losses, paths, congestion, who is to blame, how sure."""
