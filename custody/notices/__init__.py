"""Notices: who is told in chat, push or mail of what waits or happened, and how."""
