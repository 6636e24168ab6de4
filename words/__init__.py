"""Words by which a person decides on an order: console and api each import their own copy, and it imports neither."""
