"""What the api alone runs, an area a folder: use cases, stores and the types of bodies and answers."""
