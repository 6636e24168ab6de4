"""Rules in words, and trying an order against them. Pure."""
