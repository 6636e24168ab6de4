"""One file for each screen; `page.py` is what they share."""
