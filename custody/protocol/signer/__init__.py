"""The signer's commands: what touches keys and money. A process loads the modules whose commands it sends."""
