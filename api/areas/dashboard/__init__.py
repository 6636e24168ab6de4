"""One agent at a glance."""
