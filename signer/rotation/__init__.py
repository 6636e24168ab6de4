"""The versions of the master key in a running signer, everything that they sealed, and writing it again."""
