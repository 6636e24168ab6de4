"""Intents in words, and what is checked before one is acted on."""
