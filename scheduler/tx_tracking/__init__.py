"""The outcomes of what was sent: confirmed, reverted, replaced, expired; sent again when nodes forgot it."""
