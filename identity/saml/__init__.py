"""SAML answers, read strictly: pure rules."""
