"""Credential routes as pure rules: what a route may say, and which one a request falls to."""
