"""People: sign-in, sessions, factors, passkeys, devices, memberships."""
