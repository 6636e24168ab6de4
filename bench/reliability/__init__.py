"""The promises of the tests, kept up for much longer: `python -m bench.reliability`."""
