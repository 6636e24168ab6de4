"""Signers and key quorums, as the api reads them."""
