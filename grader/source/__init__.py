"""Reads learners' Python without running it: names, what a name is made of, what may not be used."""
