"""What goes over the wire: one client, what answers mean, and their shapes."""
