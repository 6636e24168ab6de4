"""An order, what is known around it, and both in words. Pure."""
