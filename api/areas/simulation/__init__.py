"""What would become of an order, and what would have become of past ones under other rules."""
