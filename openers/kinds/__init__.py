"""A module for each kind of holder, with `wrap` and `unwrap`; it imports its library only when it is asked."""
