"""Orders that were asked for, decided and signed."""
