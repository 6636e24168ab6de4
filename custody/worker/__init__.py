"""What every worker stands on: its socket, its proofs, its sealed values, and how an act begins and ends."""
