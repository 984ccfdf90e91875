"""Where submitted code runs: worker processes, started, asked under a time limit, and ended."""
