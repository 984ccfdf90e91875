"""Lesson 05: from NumPy to PyTorch. The exercises and their hints.

Cases and mistakes are in lesson_05_arrays.py, lesson_05_attention.py and lesson_05_module.py; what is said
of the mistakes that only this lesson knows is in lesson_05_texts.py.
"""

from __future__ import annotations

from grader.lessons import lesson_05_attention, lesson_05_module
from grader.lessons.lesson_05_arrays import (
    ARRAY_MISTAKES,
    LINEAR_MISTAKES,
    array_cases,
    array_with,
    linear_cases,
    linear_with,
)
from grader.lessons.lesson_05_attention import attention_cases, attention_with
from grader.lessons.lesson_05_module import module_cases, module_with
from grader.lessons.lesson_05_texts import TEXTS
from grader.model import Exercise, Lesson

lesson = Lesson(
    name="05_numpy_to_pytorch",
    title="From NumPy to PyTorch",
    question="How do the projections learn, and how do we know that nothing else changed?",
    outcome="move the computation to PyTorch, and prove that gradients arrive where they should",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="linear_from_numpy",
            task="Turn a NumPy weight matrix into an `nn.Linear` layer that computes x @ w and can be trained.",
            points=2,
            minutes=8,
            container="tensor",
            cases=lambda rng: tuple(linear_cases(rng)),
            mistakes=LINEAR_MISTAKES,
            combine=lambda ids: linear_with(*ids),
            hints=(
                "Print `nn.Linear(3, 2, bias=False).weight.shape`. Which of its two numbers is d_in?",
                "`nn.Linear` computes x @ weightᵀ, so the weight must hold wᵀ. `torch.from_numpy` and "
                "`torch.as_tensor` share memory with a float32 array; `torch.tensor` copies, and so does `copy_` "
                "into an existing weight.",
                "layer = nn.Linear(____, ____, bias=____)\n"
                "with torch.no_grad():\n"
                "    layer.weight.copy_(torch.tensor(____))\n"
                "return layer",
            ),
        ),
        Exercise(
            name="attention_torch",
            task="Write lesson 03's attention on tensors, so that gradients flow to q, k and v.",
            points=3,
            minutes=12,
            parts=("output", "weights"),
            container="tensor",
            cases=lambda rng: tuple(attention_cases(rng)),
            mistakes=lesson_05_attention.MISTAKES,
            combine=lambda ids: attention_with(*ids),
            properties=lesson_05_attention.PROPERTIES,
            forbids=("attention",),
            hints=(
                "Which four lines of `attention_numpy` have a name of their own in torch, and over which dimension "
                "does softmax run?",
                "`k.transpose(-2, -1)` (or `k.mT`) swaps the last two dimensions whatever stands before them; "
                "`torch.softmax(scores, dim=-1)` already subtracts each row's maximum. Stay in torch from q to the "
                "result: `.numpy()`, `.detach()`, `.data` and `torch.no_grad()` cut the graph.",
                "scores = q @ k.transpose(____, ____) / math.sqrt(____)\n"
                "weights = torch.softmax(scores, dim=____)\n"
                "return ____, weights",
            ),
        ),
        Exercise(
            name="SelfAttention",
            task="Give attention a home for its three projections: an `nn.Module` that can be trained.",
            points=4,
            minutes=15,
            kind="class",
            parts=("output", "weights"),
            container="tensor",
            cases=lambda rng: tuple(module_cases(rng)),
            mistakes=lesson_05_module.MISTAKES,
            combine=lambda ids: module_with(*ids),
            properties=lesson_05_module.PROPERTIES,
            forbids=("attention",),
            hints=(
                "A module's constructor makes what is learned, its forward uses it. What does self-attention learn?",
                "`super().__init__()` comes first; then three `nn.Linear(..., bias=False)` under the names w_q, w_k "
                "and w_v. In `forward`, q, k and v all come from x, and the scale is the width of q, not of x.",
                "super().__init__()\n"
                "self.w_q = nn.Linear(d_model, ____, bias=____)\n"
                "...\n"
                "q, k, v = self.w_q(____), ____, ____\n"
                "weights = torch.softmax(q @ ____ / math.sqrt(____), dim=-1)",
            ),
        ),
        Exercise(
            name="as_numpy",
            task="Bring any tensor back to NumPy: from the graph, from another device, from bfloat16.",
            points=2,
            minutes=6,
            container="ndarray",
            cases=lambda rng: tuple(array_cases(rng)),
            mistakes=ARRAY_MISTAKES,
            combine=lambda ids: array_with(*ids),
            rtol=0.0,
            atol=0.0,
            hints=(
                "Three things keep a tensor from NumPy. Two of them raise an error that names its own cure: which?",
                "`detach()` leaves the graph, `cpu()` leaves the device, and bfloat16 has no NumPy type: only that "
                "one is converted.",
                "tensor = tensor.____().____()\n"
                "if tensor.dtype == torch.____:\n"
                "    tensor = tensor.____()\n"
                "return tensor.numpy()",
            ),
        ),
    ),
)
