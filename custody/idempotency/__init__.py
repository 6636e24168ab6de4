"""What became of `Idempotency-Key`s: figures of each tenant."""
