"""What a person must decide."""
