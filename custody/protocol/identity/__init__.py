"""The commands about people and credentials. A process loads the modules whose commands it sends."""
