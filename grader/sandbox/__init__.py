"""Where a stranger's code runs: worker processes, started, asked against the clock, and ended."""
