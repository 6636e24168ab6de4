"""The work of each chain family: building, decoding, fees, and the JSON-RPC clients."""
