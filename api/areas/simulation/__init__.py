"""The outcome of an order if it were signed, and of past ones under other rules."""
