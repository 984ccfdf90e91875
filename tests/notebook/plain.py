"""Functions made of others, in a file that holds nothing else: a check reads the whole file that a function comes from."""

import functools


def unnamed(inner):
    return lambda scores: inner(scores)


def wrapped(inner):
    @functools.wraps(inner)
    def outer(*args, **kwargs):
        return inner(*args, **kwargs)

    return outer
