"""Grades submissions: one, a class of them, or each notebook that is saved during `grader watch`."""
