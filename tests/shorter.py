"""Cells that train for long, with fewer steps: for tests that ask whether a lesson's cells run, and not what is learned.

What is learned, and what a lesson asserts of it, is the stored run's: `grader build` makes it from the whole cells, `grader build
--check` fails where it is older than any of them, and nbval runs it again where torch is another. WHOLE_GRID=1 shortens nothing.
"""

from __future__ import annotations

import os

# By lesson: texts, each of which stands once in its cells, and what takes their place. Assertions on what was learned are left out.
FEWER_STEPS = {
    "04_why_scale": (
        ("seeds=range(5), steps=300)", "seeds=range(5), steps=3)"),
        ("assert max(alike) < 1.5 and min(alike) > 0.7", ""),
    ),
    "09_causal_multi_head_attention": (
        ("for step in range(steps):", "for step in range(min(steps, 6)):"),
        ("assert min(learned[way][-1] for way in WAYS if way != whole) > 2 and learned[whole][-1] < 0.5", ""),
        (
            'assert max(slowly[way][-1] for way in (whole, residual)) < 1.95 and min(slowly[way][-1] for way in ("plain", "norm only")) > 2',
            "",
        ),
        ('assert ends["pre-norm"] < 0.5 and ends["post-norm, 40 steps of warm-up"] < 1 < 2 < ends["post-norm"]', ""),
    ),
    "12_cross_attention": (
        ("(optimizer, 3e-3, total_steps=400)", "(optimizer, 3e-3, total_steps=9)"),
        ('training_steps("Transformer", 400)', 'training_steps("Transformer", 9)'),
    ),
    "18_reading_heads": (("for _ in range(200):", "for _ in range(3):"),),
}


def with_fewer_steps(lesson: str, texts: list[str]) -> list[str]:
    """The texts of a lesson's code cells, as they take less time. Raises: AssertionError where one of them reads otherwise by now."""
    for old, new in () if os.environ.get("WHOLE_GRID") else FEWER_STEPS.get(lesson, ()):
        assert sum(text.count(old) for text in texts) == 1, (
            f"{lesson}: {old!r} does not stand there once; see {__name__}"
        )
        texts = [text.replace(old, new) for text in texts]
    return texts
