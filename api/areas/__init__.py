"""The areas that the api alone runs, one a folder: use cases, stores and the types of bodies and answers."""
