"""`grader watch`: grades again what was saved. watcher.py keeps the results, screen.py shows them."""
