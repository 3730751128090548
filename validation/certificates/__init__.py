"""What a certificate says, who signs it, and whether it holds."""
