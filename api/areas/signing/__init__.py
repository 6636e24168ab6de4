"""From a caller's order to an answer: prepare, ask the signer, broadcast."""
