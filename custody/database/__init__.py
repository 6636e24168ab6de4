"""The database's functions and types: one current text each, in a file of its own. docs/recipes.md."""
