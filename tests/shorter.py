"""Cells that train or measure for long, with fewer steps: for tests that ask whether a lesson's cells run, and not what comes out.

What is learned and measured, and what a lesson asserts of it, is the stored run's: `grader build` makes it from the whole cells, `grader build
--check` fails where it is older than any of them, and nbval runs it again where torch is another. WHOLE_GRID=1 shortens nothing.
"""

from __future__ import annotations

import os

# By lesson: texts, each of which stands once in its cells, and what takes their place. Assertions on what comes out are left out.
FEWER_STEPS = {
    "03_scaled_dot_product_attention": (("for seed in range(20):", "for seed in range(2):"),),
    "04_why_scale": (
        ("dot_product_std(int(d_k), 1000,", "dot_product_std(int(d_k), 30,"),
        ("assert np.abs(measured / np.sqrt(lengths) - 1).max() < 0.25", ""),
        (
            "random_scores(int(d_k), 200, np.random.default_rng(2))",
            "random_scores(int(d_k), 9, np.random.default_rng(2))",
        ),
        ("assert max(flat[4:]) - min(flat[4:]) < 0.1 and falling[-1] < 0.1", ""),
        ("4 ** np.arange(1, 7)", "4 ** np.arange(1, 4)"),
        ("np.empty((len(some_widths), 2000))", "np.empty((len(some_widths), 9))"),
        ("for row in range(2000):", "for row in range(9):"),
        ('assert 0.25 < min(median["divided by √d_k"]) and max(mean["divided by √d_k"]) < 0.35', ""),
        ('assert spread["unscaled"] > 100 > 2 > spread["divided by √d_k"]', ""),
        ('assert 1 < min(mean["unscaled"][1:]) and max(mean["unscaled"]) < 2', ""),
        ('assert median["unscaled"][-1] < 1e-6 and mean["divided by d_k"][-1] < 0.005', ""),
        ("seeds=range(5), steps=300)", "seeds=range(5), steps=3)"),
        ("assert max(alike) < 1.5 and min(alike) > 0.7", ""),
        ("200, np.random.default_rng(2), n_keys=16)", "9, np.random.default_rng(2), n_keys=16)"),
        ('assert norms["unscaled"][-1] < 0.06 and norms["divided by d_k"][-1] > 0.2', ""),
        ("random_scores(4096, 300,", "random_scores(4096, 9,"),
    ),
    "09_causal_multi_head_attention": (
        ("for step in range(steps):", "for step in range(min(steps, 2)):"),
        ("(spreads[0], spreads[5])", "(spreads[0], spreads[-1])"),
        ("assert min(learned[way][-1] for way in WAYS if way != whole) > 2 and learned[whole][-1] < 0.5", ""),
        (
            'assert max(slowly[way][-1] for way in (whole, residual)) < 1.95 and min(slowly[way][-1] for way in ("plain", "norm only")) > 2',
            "",
        ),
        ('assert ends["pre-norm"] < 0.5 and ends["post-norm, 40 steps of warm-up"] < 1 < 2 < ends["post-norm"]', ""),
    ),
    "11_gpu": (("torch.randn(3, 1, 12, 1024, 64,", "torch.randn(3, 1, 12, 96, 64,"),),
    "12_cross_attention": (
        ("(optimizer, 3e-3, total_steps=400)", "(optimizer, 3e-3, total_steps=9)"),
        ('training_steps("Transformer", 400)', 'training_steps("Transformer", 9)'),
    ),
    "13_attention_backward": (
        ("def descend(rule, seed, steps=400,", "def descend(rule, seed, steps=9,"),
        ("assert np.mean(downhill) > 0.85", ""),
    ),
    "17_todays_block": (("def losses(network, steps=600):", "def losses(network, steps=20):"),),
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
