"""Messages to a person outside of HTTP: mail and text messages."""
