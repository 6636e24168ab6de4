"""What a wallet holds: native coins and tokens, and what they are worth by the operator's own list of prices."""
