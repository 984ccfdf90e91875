"""Grades submissions: one, a class of them, or whatever is saved while one watches."""
