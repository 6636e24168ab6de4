"""The process of everything that happens after the answer. It decides nothing that a policy decides."""
