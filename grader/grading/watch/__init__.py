"""`grader watch`: grades again what was saved. watcher.py keeps the results as room.py has them, screen.py shows them."""
