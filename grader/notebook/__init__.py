"""The calls of a learner: check, hint, solution, replay, reset, explain, progress; their record; update."""

ROOM = ("fine", "join", "leave", "stuck")  # which a lesson does not import: a room says how
OFFERED = ("check", "explain", "figures", "hint", "passed", "progress", "replay", "reset", "solution", *ROOM)  # by `from grader import …`
