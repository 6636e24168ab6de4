"""Bitcoin: addresses in rules, for now."""
