"""The contract, part by part; `api/http/openapi.py` puts it together."""
