"""The service as tools of a model: a client over HTTP with an agent's token, by the Model Context Protocol."""
