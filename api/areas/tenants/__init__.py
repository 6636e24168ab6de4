"""The isolation boundary, and its configuration."""
