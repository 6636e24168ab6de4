"""The console for people who decide: a client of the REST API like any other. It imports nothing else of Custody."""
