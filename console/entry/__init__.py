"""Identity of the person at the console: settings, credentials, tokens, and signing in."""
