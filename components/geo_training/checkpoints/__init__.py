"""What outlives a process: its state as plain arrays and JSON, where it is kept, what a root writes."""
