"""The holdings of a wallet: native coins and tokens, and their worth by the operator's own list of prices."""
