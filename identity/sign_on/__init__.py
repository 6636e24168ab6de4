"""Sign-on: people who are proven by identity providers."""
