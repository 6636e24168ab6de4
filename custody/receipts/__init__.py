"""Receipts: signed statements about signatures, and what checks them offline."""
