"""Keys that come from elsewhere: how they travel sealed to the signer."""
