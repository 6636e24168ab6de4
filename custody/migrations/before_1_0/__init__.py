"""The migrations from before 1.0, as databases have them: no file here ever changes, and none is added."""
