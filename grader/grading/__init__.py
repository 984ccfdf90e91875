"""Grades submissions: one, or a class of them."""
