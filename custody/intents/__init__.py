"""Intents: what somebody proposes, a person authorises, and the signer then carries out."""
