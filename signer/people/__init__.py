"""The signer's stories about people: every session begins here, on evidence checked here."""
