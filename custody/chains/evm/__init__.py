"""EVM: addresses, our own transaction encoder, what calldata and typed data do, and the node's part."""
