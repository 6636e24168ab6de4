"""The base of every worker: its socket, its proofs, its sealed values, and how an act begins and ends."""
