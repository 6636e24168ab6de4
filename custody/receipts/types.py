"""Why there is no receipt."""
