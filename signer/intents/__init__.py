"""Intents in the signer: each row under a MAC over all that decides, made again at each step."""
