"""Reads learners' Python without running it: names, where their values come from, what is forbidden."""
