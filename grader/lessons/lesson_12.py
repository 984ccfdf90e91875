"""Lesson 12: on the GPU. The exercises and their hints.

Cases and mistakes are in lesson_12_device.py and lesson_12_fast.py; what is said of the mistakes that only
this lesson knows is in lesson_12_texts.py.
"""

from __future__ import annotations

from grader.lessons import lesson_12_device as device, lesson_12_fast as fast
from grader.lessons.lesson_12_texts import TEXTS
from grader.model import Exercise, Lesson

lesson = Lesson(
    name="12_gpu",
    title="Multi-head causal attention on the GPU",
    question="The same numbers, faster: how would we know that it is faster, and why is it?",
    outcome="measure what attention costs, and run it fused on whatever device is there",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="pick_device",
            task="Choose the device to work on: CUDA, else Apple's GPU, else the CPU.",
            points=1,
            minutes=4,
            parts=("device type",),
            container="any",
            cases=lambda rng: tuple(device.pick_cases(rng)),
            mistakes=device.PICK_MISTAKES,
            combine=lambda ids: device.pick_with(*ids),
            hints=(
                "Which three names can the device's type have, and which question decides each?",
                "`torch.cuda.is_available()` and `torch.backends.mps.is_available()` say what can be used; "
                "`is_built()` says what torch was compiled for.",
                "if torch.cuda.____():\n"
                '    return torch.device("cuda")\n'
                "if torch.backends.mps.____():\n"
                "    return ____\n"
                "return ____",
            ),
        ),
        Exercise(
            name="attention_flops",
            task="Count the floating-point operations of attention's two matrix products.",
            points=2,
            minutes=6,
            container="number",
            cases=lambda rng: tuple(device.flops_cases(rng)),
            mistakes=device.FLOPS_MISTAKES,
            combine=lambda ids: device.flops_with(*ids),
            rtol=1e-6,
            atol=0.0,
            hints=(
                "For one score, how many numbers are multiplied, and how many added? How many scores are there?",
                "The product q kᵀ has T_q · T_k entries of d_head multiply-adds each, and weights · v takes as many. "
                "Each multiply-add counts 2, each head of each item of the batch does it all.",
                "total = ____ * batch * num_heads * ____ * ____ * d_head\nreturn total // ____ if causal else total",
            ),
        ),
        Exercise(
            name="time_ms",
            task="Measure how long fn() takes on a device that works while Python goes on.",
            points=3,
            minutes=12,
            container="any",
            cases=lambda rng: tuple(device.time_cases(rng)),
            mistakes=device.TIME_MISTAKES,
            combine=lambda ids: device.time_with(*ids),
            hints=(
                "When `fn()` returns, what has a GPU done so far? And what may it still be doing when the clock starts?",
                "`torch.cuda.synchronize(device)` and `torch.mps.synchronize()` wait; a CPU needs no waiting. "
                "`torch.device(device).type` is the name for strings and devices alike. `time.perf_counter()` counts seconds.",
                "for _ in range(____):\n"
                "    fn()\n"
                "for _ in range(repeats):\n"
                "    wait(____)\n"
                "    start = time.perf_counter()\n"
                "    fn()\n"
                "    ____\n"
                "    times.append(time.perf_counter() - start)\n"
                "return ____ * statistics.median(times)",
            ),
        ),
        Exercise(
            name="FastCausalMultiHeadAttention",
            task="Put the fused operator into lesson 11's class: the same numbers, and no (T, T) tensor.",
            points=4,
            minutes=15,
            kind="class",
            parts=("output",),
            container="tensor",
            cases=lambda rng: tuple(fast.fast_cases(rng)),
            mistakes=fast.MISTAKES,
            combine=lambda ids: fast.fast_with(*ids),
            properties=fast.PROPERTIES,
            hints=(
                "Of lesson 11's forward, which lines does the operator replace, and which stay as they are?",
                "The operator wants q, k and v as (B, num_heads, T, d_head) and gives the same shape back. `view` and "
                "`transpose` move nothing in memory; `reshape` at the end makes the one copy that is needed.",
                "q, k, v = self.qkv(x).view(B, T, 3, ____, ____).permute(____).unbind(____)\n"
                "attended = F.scaled_dot_product_attention(q, k, v, ____=True)\n"
                "return self.proj(attended.transpose(____, ____).reshape(B, T, d_model))",
            ),
        ),
    ),
)
