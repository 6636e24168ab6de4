"""Sign-on, the api's side: it talks to identity providers and hands on what they say."""
