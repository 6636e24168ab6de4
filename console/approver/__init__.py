"""Voting on an order with a key of one's own: what the key signs, and the page of this machine that asks for it."""
