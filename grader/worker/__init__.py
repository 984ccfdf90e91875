"""Everything that runs in the same process as a learner's code; knows no answer.

Nothing in this package knows an answer: no reference, no expected value, no mistake, no seed.
It imports only the standard library, NumPy, safetensors and (on demand) torch, and never the rest
of `grader`, so that a worker process can load it by its folder alone.
"""
