"""Who is at the console: settings, credentials, tokens, and how one gets in."""
