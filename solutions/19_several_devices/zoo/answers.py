"""Lesson 19: attention over several ranks, as learners write it. In the wrong answers, None stands where the verdict names no mistake of a list."""

RIGHT = {}
WRONG = {}
