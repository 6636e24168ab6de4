"""What an order does, in words, and what is known around it. Pure, but for `order_context.py` and `address_book.py`."""
