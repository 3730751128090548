"""What happens after the certificate: reading on, judging what moved, telling and revoking."""
