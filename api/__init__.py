"""The HTTP process. It speaks with callers and nodes, reads rows, and asks the signer; it holds no key."""
