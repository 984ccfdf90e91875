"""What is said of the mistakes that turn up in more than one lesson, by id: `TEXTS["SM1"]`.

A mistake that only one lesson knows stands in that lesson's `texts`. Ids are stable: reports and
`explain("SM1")` use them. Names in the code of a text are those of the lessons (q, k, v, scores,
mask), and True in a mask means that attention is allowed.
"""

from __future__ import annotations

from grader.course.spec import MistakeText

from .attention import TEXTS as ATTENTION
from .backward_and_dtype import TEXTS as BACKWARD_AND_DTYPE
from .cache_and_beyond import TEXTS as CACHE_AND_BEYOND
from .masks import TEXTS as MASKS
from .multi_head import TEXTS as MULTI_HEAD
from .of_several_lessons import TEXTS as OF_SEVERAL_LESSONS
from .positions import TEXTS as POSITIONS
from .softmax import TEXTS as SOFTMAX

GROUPS = (SOFTMAX, ATTENTION, MASKS, POSITIONS, MULTI_HEAD, BACKWARD_AND_DTYPE, CACHE_AND_BEYOND, OF_SEVERAL_LESSONS)

TEXTS: dict[str, MistakeText] = {text.id: text for group in GROUPS for text in group}
