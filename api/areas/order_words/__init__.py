"""Orders that wait, in the words by which a person decides."""
