"""Orders in words, and what is known around them. Pure, but for `order_context.py` and `address_book.py`."""
