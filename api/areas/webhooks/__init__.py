"""Webhooks: who is told what, by signed posts, and what became of each."""
