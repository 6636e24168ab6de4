"""What each chain family means: building, decoding, fees, and the JSON-RPC clients."""
