"""What a learner calls: check, hint, solution, explain, progress; their record; reset and update."""
