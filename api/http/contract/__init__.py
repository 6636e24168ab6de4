"""What the contract says, part by part; `api/http/openapi.py` puts it together."""
