"""The jobs that publish events and deliver them."""
