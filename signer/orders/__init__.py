"""The kinds of orders, a file for each; `built_in.py` lists those that are signed here."""
