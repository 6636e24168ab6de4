"""The commands to the signer, and the client that sends them. The normative page is docs/protocol.md."""
