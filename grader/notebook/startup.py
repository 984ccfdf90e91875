# Put there by the attention course: a restarted kernel then answers `check(...)` with a sentence that says which cell to run.
try:
    __import__("importlib").import_module("grader.notebook.shell").attach()
except Exception:  # the course is gone or broken: no other notebook is to suffer from that
    pass
