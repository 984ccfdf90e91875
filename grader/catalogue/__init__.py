"""What is said of the mistakes that turn up in more than one lesson, by id: `TEXTS["SM1"]`.

A mistake that only one lesson knows stands in that lesson's `texts`. Ids are stable: reports and
`explain("SM1")` use them. Names in the code of a text are those of the lessons (q, k, v, scores,
mask), and True in a mask means that attention is allowed.
"""

from __future__ import annotations

from grader.catalogue import attention, backward_and_dtype, cache_and_beyond, masks, multi_head, positions, softmax
from grader.model import MistakeText

GROUPS = (softmax, attention, masks, positions, multi_head, backward_and_dtype, cache_and_beyond)

TEXTS: dict[str, MistakeText] = {text.id: text for group in GROUPS for text in group.TEXTS}
