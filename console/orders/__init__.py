"""Filters, pages and context of orders, as the console asks the service for them."""
