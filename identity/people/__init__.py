"""People: every session begins here, on evidence that is checked here."""
