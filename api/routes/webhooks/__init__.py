"""Webhook endpoints, and deliveries to them."""
