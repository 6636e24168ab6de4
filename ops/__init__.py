"""The `custody` command: set up, run, supervise and examine the processes."""
