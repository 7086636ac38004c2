"""What a sweep is: its tables, the grid they stand for, the spec of each run, and the hashes of these."""
