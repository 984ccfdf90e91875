"""A loop that writes with a cache: what it writes, and that every token is seen once."""

from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from ...shared.library import on_another_device
from .. import readings

FED = readings.FED
LOOP = "for _ in range(max_new_tokens):"
NEXT = "new = logits[:, -1].argmax(dim=-1, keepdim=True)"
CACHE = "cache = model.new_cache(ids.shape[0])"


FED_TOO = "ids = torch.cat([ids, new], dim=1)", "ids = torch.cat([ids, new], dim=1)\n        {}"


def _said(fed: list[int], most: int) -> str:
    """'its 2 calls had 3, 4 tokens'; most: of how many calls at the most it is known what they had."""
    if len(fed) == 1:
        return f"its only call had {fed[0]} token{'s' * (fed[0] != 1)}"
    first = "first " if len(fed) == most else ""
    return f"its {first}{len(fed)} calls had {', '.join(map(str, fed[:6]))}{', …' if len(fed) > 6 else ''} tokens"


def either(*texts: str, last: str = "model(new, cache)"):
    """A mistake in both forms: as the reference feeds the model, and with one call more, of the last new token; last: that call."""
    return patch(*texts), patch(*texts) + patch(FED_TOO[0], FED_TOO[1].format(last))


@exercise(points=3, minutes=12, difficulty=2, result_type="tensor", dtype=("int64",), forbids=("tampering",))
class generate_cached:
    """Let a model with a cache continue a prompt: the prompt goes in once, then each new token, alone."""

    def cases(rng):
        def case(
            key: str, title: str, b: int, t: int, new: int, training: bool = False, likely: float = 0.0, **more: Any
        ) -> Case:
            vocabulary = 11 + t  # as many for cases of the same sizes
            table = rng.normal(size=(vocabulary, vocabulary)).astype(np.float32)
            table[:, 0] += likely  # a token like any other: nothing ends at it
            options: dict[str, Any] = {"table": table, "training": training, **more}
            return Case(
                key,
                title,
                (Tensor(rng.integers(0, vocabulary, size=(b, t))), new),
                probe="probes.generation",
                options=options,
                names=("ids", "max_new_tokens"),
                reading=readings.generation,
            )

        yield case("small", "two new tokens after three", 1, 3, 2)
        yield case("sizes", "six new tokens after four, two texts", 2, 4, 6)
        yield case("seen-again", "the same sizes, new numbers", 2, 4, 6)
        yield case("training", "a model in training mode, all inputs by name", 2, 3, 5, training=True, named=True)
        yield case("one-token", "a prompt of a single token", 3, 1, 5, training=True)
        yield case("one-new", "a single new token", 2, 5, 1)
        yield case("one-new-again", "a single new token, a model in training mode", 3, 2, 1, training=True)
        yield case("long", "twenty new tokens", 1, 6, 20)
        yield case("again", "the same model writes a second time", 2, 3, 4, again=True)
        yield case("zeros-alone", "one text, and token 0 ends nothing", 1, 5, 12, likely=4.0)
        yield case("zeros", "token 0 is written, too, and ends nothing", 2, 4, 12, likely=6.0)
        yield case("rows", "more texts than tokens", 7, 2, 3, training=True)
        for i, (b, t) in enumerate(((2, 3), (1, 1), (3, 4))):
            yield case(f"none-{i}", "no new token", b, t, 0, training=i == 1)

        on_device = on_another_device(case("sizes", "four new tokens after three, two texts", 2, 3, 4))
        options = {"table": rng.normal(size=(14, 14)).astype(np.float32)}
        yield replace(on_device, probe="probes.generation_on_device", options=options)

    @holds("the model sees the prompt in one call, then each new token once, alone")
    def once(case, parts):
        counts, t, new = parts[FED].astype(int).ravel(), case.args[0].array.shape[1], case.args[1]
        fed = np.trim_zeros(counts, "b").tolist()
        if fed == [t] * bool(new) + [1] * (new - 1):
            return (
                None
                if parts[readings.IN_TURN]
                else "after the prompt it saw other tokens than those that were written."
            )
        if not fed:
            return "it was not called."
        wanted = f"{t}, then 1 each time, {new} or {new + 1} calls in all" if new else "none, or the prompt once"
        return f"{_said(fed, len(counts))}; expected: {wanted}."

    hints = (
        "After the prompt has gone in, which tokens does the cache not know yet?",
        "Keep two things: the whole text, which you return, and what the model has not seen yet: first the prompt, later one token.",
        "cache = model.new_cache(____)\nnew = ids\nfor _ in range(max_new_tokens):\n    logits = model(____, cache)\n"
        "    new = logits[:, ____].argmax(dim=-1, keepdim=True)\n    ids = torch.cat([ids, ____], dim=1)",
    )

    mistakes = {
        "GC1": mistake(
            *either("model(new, cache)", "model(ids, cache)", last="model(ids, cache)"),
            says="The whole text was fed at each step; feed only what is new, since the cache holds the rest already.",
            why="""A cache is extended by whatever is fed. Fed the text again, it holds the prompt twice, three times, …, at positions
            that were never trained. A real one also runs out of room.""",
        ),
        "GC5": mistake(
            *either("new = ids\n", "model(ids, cache)\n        new = ids[:, -1:]\n"),
            says="The last token of the prompt was fed twice: its logits came with the prompt.",
            why="""The prompt's call already gives the logits after its last token. Fed once more, that token is in the cache twice,
            and everything after it one place too late.""",
        ),
        "CM50": patch("logits[:, -1]", "logits[:, 0]"),
        "CM43": (*either("torch.no_grad()", "torch.enable_grad()"),),
        "CM42": (patch(CACHE, f"model.eval()\n        {CACHE}"), patch(CACHE, f"model.train()\n        {CACHE}")),
        "CM54": (
            *(
                patch("return ids", f"return ids[:, {start}:]")
                for start in ("ids.shape[1] - max_new_tokens", "-max_new_tokens")
            ),
        ),
        "GC13": mistake(
            *either(LOOP, "for _ in range(max_new_tokens + 1):"),
            *either(LOOP, "for _ in range(max_new_tokens - 1):"),
            patch(LOOP, "for _ in range(max(max_new_tokens, 1)):"),
            says="""One token too many or too few was written: max_new_tokens tokens should be, the first from the prompt's call, the last
            never fed.""",
            why="""N new tokens need N predictions: one from the prompt and N − 1 from new tokens. The last prediction is appended, too,
            even if it is never fed. Where the prompt has a call of its own before the loop, that call gives the first token also where
            none was asked for: with max_new_tokens = 0 the prompt alone should come back.""",
        ),
        "GC17": mistake(
            patch(NEXT, "new = logits[:, -1].argmin(dim=-1, keepdim=True)"),
            patch(NEXT, "new = logits[:, -1].softmax(dim=0).argmax(dim=-1, keepdim=True)"),
            patch(NEXT, "new = torch.multinomial(torch.softmax(logits[:, -1], dim=-1), 1)"),
            says="A token other than the likeliest was taken, drawn or by another rule; use argmax of the logits, over the vocabulary.",
            why="""Greedy text is the same each time, so that two ways of computing it can be compared token for token. Softmax over the
            vocabulary changes no order; over the batch it does, and argmin takes the unlikeliest.""",
        ),
        "GC18": mistake(
            *(
                patch("argmax(dim=-1, keepdim=True)", f"argmax(){shaped}")
                for shaped in ("", ".expand(ids.shape[0], 1)", ".view(1, 1)")
            ),
            patch(", keepdim=True", ""),
            says="""argmax lost an axis or looked through all texts together; `argmax(dim=-1, keepdim=True)` gives one id for each text,
            (B, 1).""",
            why="""`argmax(dim=-1)` of (B, V) leaves one number a row, (B,), and ids can be joined with (B, 1) only; the model, too, wants
            (B, 1). Without `dim` the logits are read as one long row of B · V numbers, and what comes back is one place in it: from the
            second text on a number above every id.""",
        ),
    }
