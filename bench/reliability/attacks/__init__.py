"""Attacks that slow, fill or blind others, and what an innocent tenant notices of them."""
