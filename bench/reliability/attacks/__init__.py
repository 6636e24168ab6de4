"""What an attacker does to slow, fill or blind others, and what an innocent tenant notices of it."""
