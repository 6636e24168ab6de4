"""The keys of each chain family, a file for each; `built_in.py` lists those that are held here."""
