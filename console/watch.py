"""Keeps the queue up to date: events as they come, and a look of its own now and then. (H1)"""
