"""The outcomes of `Idempotency-Key`s: figures of each tenant."""
