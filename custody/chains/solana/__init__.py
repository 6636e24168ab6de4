"""Solana: what a serialized message does, signing our own copy of it, and the node's part."""
