"""Machinery that knows no business."""
