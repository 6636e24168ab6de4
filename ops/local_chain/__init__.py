"""The walk-through's own EVM chain: in memory, one process, forgotten on exit."""
