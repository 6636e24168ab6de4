"""Questions to the person, each a screen of its own with a typed answer."""
