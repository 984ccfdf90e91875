"""What a learner calls: check, hint, solution, replay, reset, explain, progress; their record; update."""
