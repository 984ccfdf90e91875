"""A learner's calls: check, passed, hint, solution, replay, reset, explain, predict, progress; their record; update."""

ROOM = ("fine", "join", "leave", "stuck")  # which a lesson does not import: a room says how
# By `from grader import …`.
OFFERED = ("check", "explain", "figures", "hint", "passed", "predict", "progress", "replay", "reset", "solution", *ROOM)
