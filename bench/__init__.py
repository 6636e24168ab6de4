"""Figures, never asserted by time."""
