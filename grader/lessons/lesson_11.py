"""Lesson 11: causal multi-head attention with one fused projection, a block of a Transformer, and a loop that writes."""

from __future__ import annotations

from grader.lessons import lesson_11_attention as attention, lesson_11_block as block, lesson_11_generate as generate
from grader.lessons.lesson_11_texts import TEXTS
from grader.model import Exercise, Lesson, Property

lesson = Lesson(
    name="11_causal_multi_head_attention",
    title="Causal multi-head attention, and a language model",
    question="Which parts, put together, learn to write from nothing but text?",
    outcome="build a Transformer block, and train a small language model with it",
    texts=TEXTS,
    exercises=(
        Exercise(
            name="CausalMultiHeadAttention", task="Causal attention of many heads with one projection for q, k and v, and dropout.",
            kind="class", points=4, minutes=25, cases=attention.cases, container="tensor", parts=("output",),
            forbids=("attention",), mistakes=attention.MISTAKES, combine=lambda ids: attention.attention(*ids),
            properties=(
                Property("a later token changes no earlier output", attention.past_is_fixed, needs=("before", "after")),
                Property("items of a batch do not meet", attention.items_apart, needs=("after", "other item")),
            ),
            hints=(
                "The fused projection gives 3 · d_model numbers a token. Which of them are q, and which of those belong to head 0?",
                "`self.qkv(x).view(B, T, 3, num_heads, d_head)` names the axes in the order in which the numbers lie; `permute` moves "
                "them. An `nn.Dropout` of the module follows its mode.",
                "q, k, v = self.qkv(x).view(B, T, 3, ____, ____).permute(____)  # each (B, num_heads, T, d_head)\n"
                "scores = q @ k.mT / math.sqrt(____)\n"
                "weights = self.dropout(torch.softmax(scores.masked_fill(____, -torch.inf), dim=-1))\n"
                "return self.proj((weights @ v).transpose(____).reshape(B, T, d_model))",
            ),
        ),
        Exercise(
            name="TransformerBlock", task="Attention and a small network, each behind a normalisation and beside a residual path.",
            kind="class", points=3, minutes=12, cases=block.cases, container="tensor", parts=("output",), rtol=1e-5, atol=1e-4,
            forbids=("layers",), mistakes=block.MISTAKES, combine=lambda ids: block.block(*ids),
            hints=(
                "What does the block return when both attention and the network return zero?",
                "Four attributes in `__init__`; two lines in `forward`, each of the form x = x + f(norm(x)).",
                "x = x + self.attn(____)\nreturn x + self.mlp(____)",
            ),
        ),
        Exercise(
            name="generate", task="Let a language model write on from given tokens, one token at a time.", points=3, minutes=20,
            cases=generate.cases, container="any", parts=("ids",), mistakes=generate.MISTAKES,
            combine=lambda ids: generate.generate(*ids), atol=0.07,
            hints=(
                "Which of the logits that come back say something about the token that follows the last one?",
                "`model.training` is the flag; `torch.no_grad()` keeps the graph away; `torch.multinomial` takes a `generator`.",
                "logits = model(ids[:, ____:])[:, ____]\n"
                "following = ____ if temperature == 0 else torch.multinomial(torch.softmax(____, dim=-1), 1, generator=____)\n"
                "ids = torch.cat([ids, following], dim=____)",
            ),
        ),
    ),
)  # fmt: skip
