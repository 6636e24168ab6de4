"""Routes below this part of the address."""
