"""The calls of a learner: check, hint, solution, replay, reset, explain, progress; their record; update."""
