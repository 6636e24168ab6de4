"""What may be said to the signer, and the client that says it. The normative page is docs/protocol-signer.md."""
