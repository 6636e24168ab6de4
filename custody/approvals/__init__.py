"""Orders that a person must decide."""
