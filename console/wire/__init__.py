"""The wire: one client, the meaning of answers, and their shapes."""
