"""The calls of a learner: check, hint, solution, replay, reset, explain, progress; their record; update."""

ROOM = ("fine", "join", "leave", "stuck")  # which a lesson does not import: a room says how
# By `from grader import …`.
OFFERED = ("check", "explain", "figures", "hint", "passed", "predict", "progress", "replay", "reset", "solution", *ROOM)
