"""`grader watch`: grades again what was saved. files.py finds it, worker_threads.py grades it, watcher.py keeps the results
as room.py has them, screen.py shows them."""

from grader.grading.watch.room import LearnerState, News, WatchedRoom, board_of, next_step, wrongs
from grader.grading.watch.watcher import LOOK_S, Watcher

__all__ = ["LOOK_S", "LearnerState", "News", "WatchedRoom", "Watcher", "board_of", "next_step", "wrongs"]
