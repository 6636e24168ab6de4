"""The contract that clients are made from, and what makes it: `scripts/sdk` runs these; no client imports them."""
