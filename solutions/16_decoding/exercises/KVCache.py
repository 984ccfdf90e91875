"""A cache judged as an object: what several appends give, where it lies in memory, and what a refusal leaves."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

from .. import readings

KEYS, VALUES = "self.keys[:, :, start:end] = k.detach()", "self.values[:, :, start:end] = v.detach()"
RETURN = "return (self.keys[:, :, :end], self.values[:, :, :end])"
FULL = "raise ValueError(f'{end} tokens do not fit into a cache of {self.max_len}')"
OLD_K, OLD_V = "self.keys[:, :, :start]", "self.values[:, :, :start]"
TAKEN = (
    "self.keys = torch.zeros(shape, dtype=dtype, device=device)",
    "self.values = torch.zeros(shape, dtype=dtype, device=device)",
)
CARELESS = patch(  # the solution's own refusal would come before the mistake
    "b, h, _, d = self.keys.shape\n        for name, new in (('k', k), ('v', v)):", "for name, new in ():"
)
PAIR = ("keys", "values")


def joined(keys: str, *, returned: str = "return (self.keys, self.values)"):
    """Keys and values grow by torch.cat; `keys` is how the new keys are made, with {old} and {new} for both."""
    made = (keys.format(old=OLD_K, new="k"), keys.format(old=OLD_V, new="v"))
    return patch(KEYS, f"self.keys = {made[0]}", VALUES, f"self.values = {made[1]}", RETURN, returned)


def allocated(how: str):
    """The memory is allocated in another way; how: the arguments of torch.zeros."""
    return patch(TAKEN[0], f"self.keys = torch.zeros({how})", TAKEN[1], f"self.values = torch.zeros({how})")


EMPTY = allocated("(batch, num_kv_heads, 0, d_head), dtype=dtype, device=device")
NONE = patch(TAKEN[0], "self.keys = None", TAKEN[1], "self.values = None") + CARELESS
FIRST = "{{new}}{kept} if start == 0 else torch.cat([{{old}}, {{new}}], dim=2)"


def both(text: str):
    """What is returned is made of the memory in another way; {name} stands for it."""
    return patch(RETURN, f"return ({text.format(name='self.keys')}, {text.format(name='self.values')})")


@exercise(
    kind="class",
    points=4,
    minutes=18,
    difficulty=2,
    result_type="tensor",
    rtol=0,
    atol=0,
    result_names=("result",),
    forbids=("tampering",),
)
class KVCache:
    """Keep the keys and values of all tokens so far, in memory that is allocated once."""

    def cases(rng):
        def case(
            key: str,
            title: str,
            sizes: tuple[int, int, int, int],
            chunks: tuple[int, ...],
            *,
            k: Any = None,
            v: Any = None,
            dtype: str = "float32",
            raises: str | None = None,
            **options: Any,
        ) -> Case:
            b, h, _, d = sizes
            shape = b, h, sum(chunks), d
            k = np.round(rng.normal(size=shape), 2) if k is None else k
            v = np.round(rng.normal(size=shape), 2) if v is None else v
            return Case(
                key,
                title,
                (*sizes, Tensor(k, dtype), Tensor(v, dtype)),
                probe="probes.appends",
                raises=raises,
                options={
                    "chunks": chunks,
                    **(
                        {"dtype": None}
                        if dtype == "float32"
                        else {"dtype": dtype, "shown": {"dtype": f"torch.{dtype}"}}
                    ),
                    **options,
                },
                names=("batch", "num_kv_heads", "max_len", "d_head", "k to append", "v to append"),
                dtype=(dtype, "int64"),
                reading=readings.appends,
            )

        yield case("small", "two tokens at once, then one", (1, 1, 4, 2), (2, 1))
        sizes, (k, v) = (2, 3, 7, 4), np.round(rng.normal(size=(2, 2, 3, 6, 4)), 2)
        for key, chunks in (("whole", (6,)), ("ones", (1,) * 6), ("uneven", (1, 3, 2)), ("halves", (3, 3))):
            yield case(key, f"the same six tokens, appended {' + '.join(map(str, chunks))}", sizes, chunks, k=k, v=v)
        yield case("full", "as many tokens as max_len, the last one alone", (3, 2, 5, 1), (4, 1), named=True)
        yield case("full-at-once", "as many tokens as max_len, at once", (2, 2, 3, 2), (3,))
        yield case("one", "room for a single token", (2, 1, 1, 3), (1,))
        yield case(
            "beside", "a second cache beside it, filled with other numbers", (2, 2, 6, 3), (2, 1, 2), beside=True
        )
        yield case("long", "more than sixteen tokens", (1, 2, 40, 3), (17, 1, 1, 9))
        for dtype in ("float64", "float16", "bfloat16"):
            yield case(dtype, f"numbers of {dtype}", (2, 3, 6, 2), (2, 1, 3), dtype=dtype, by_place=dtype == "float16")
        for i, (sizes, chunks) in enumerate(
            (((2, 3, 4, 2), (3, 2, 1)), ((1, 2, 5, 3), (5, 1)), ((2, 1, 6, 2), (2, 3, 4, 1)), ((1, 3, 5, 2), (4, 3, 1)))
        ):
            yield case(
                f"after-{i}",
                "one append is too long and is refused; what fits is appended after it",
                sizes,
                chunks,
                refused=True,
            )
        for i, (sizes, chunks) in enumerate((((1, 2, 3, 4), (4,)), ((2, 3, 4, 2), (2, 3)), ((2, 1, 5, 3), (5, 1)))):
            yield case(f"too-long-{i}", f"{sum(chunks)} tokens, max_len {sizes[2]}", sizes, chunks, raises="ValueError")
        for i, sizes in enumerate(((2, 3, 5, 4), (1, 2, 3, 6), (3, 1, 4, 2))):
            yield Case(
                f"device-{i}",
                "a cache made for another device",
                sizes,
                probe="probes.memory_devices",
                options={"device": "meta", "by_place": i == 1},
                names=("batch", "num_kv_heads", "max_len", "d_head"),
                reading=readings.memory_devices,
            )

    @holds("chunks of any size give what one append gives", cases=("whole", "ones", "uneven", "halves"))
    def chunked(case, parts, *others):
        whole = [parts[f"{name} after 6 tokens"] for name in PAIR]
        for other, found in zip(others[::2], others[1::2], strict=True):
            for name, expected in zip(PAIR, whole, strict=True):
                got = found.get(f"{name} after 6 tokens")
                if got is None or got.shape != expected.shape or not np.array_equal(got, expected):
                    chunks = " + ".join(map(str, other.options["chunks"]))
                    apart = (
                        ""
                        if got is None or got.shape != expected.shape
                        else f" by up to {np.abs(got - expected).max():.3g}"
                    )
                    return f"appended {chunks}, the {name} differ{apart} from those of one append."
        return None

    hints = (
        "When the third chunk comes, at which place of the memory does it begin? Who knows?",
        "`torch.zeros` for max_len tokens in `__init__`. `append` writes into a slice of it, `self.keys[:, :, start:end] = k`, and "
        "returns a longer slice, which is a view.",
        "start, end = self.length, self.length + ____\nif end > ____:\n    raise ValueError(…)\nself.keys[:, :, ____] = k\n"
        "self.values[:, :, ____] = v\nself.length = ____\nreturn self.keys[:, :, :____], ____",
    )

    mistakes = {
        "KC1": mistake(
            joined("torch.cat([{old}, {new}], dim=2)"),
            joined("torch.cat([{old}, {new}], dim=2)") + EMPTY,
            joined(FIRST.format(kept=".clone()")) + NONE,
            patch(
                TAKEN[0],
                "self.keys = []",
                TAKEN[1],
                "self.values = []",
                KEYS,
                "self.keys.append(k.clone())",
                VALUES,
                "self.values.append(v.clone())",
                RETURN,
                "return (torch.cat(self.keys, dim=2), torch.cat(self.values, dim=2))",
            )
            + CARELESS,
            patch(
                "\n        ".join(TAKEN),
                "self.shape, self.dtype, self.device = (shape, dtype, device)",
                "start, end = (self.length, self.length + k.shape[2])",
                """if self.length == 0:
            self.keys = torch.zeros(self.shape, dtype=self.dtype, device=self.device)
            self.values = torch.zeros(self.shape, dtype=self.dtype, device=self.device)
        start, end = (self.length, self.length + k.shape[2])""",
            )
            + CARELESS,
            says="Memory was allocated by an append; it should be allocated once, when the cache is made, for max_len tokens.",
            why="""torch.cat makes a new tensor and copies everything so far into it. For T tokens one at a time that is 1 + 2 + … + T
            tokens copied, T²/2, and for a moment old and new are in memory together. Memory that was allocated once is only written to.
            And whether there is room is a question for the beginning: a server that finds out at the first append, or later, has to throw
            an answer away.""",
        ),
        "KC2": mistake(
            patch("self.length = end", "pass"),
            patch("self.length = end", "self.length += 1"),
            patch("self.length = end", "self.length += 1") + both("{name}[:, :, :self.length]"),
            says="The cache does not count its tokens: each append begins at place 0 again, or counts as a single token.",
            why="""Where a chunk goes follows from how many tokens came before. That number is the cache's state, as much as the numbers
            in it. After a prompt of 5 tokens the length should be 5. If it is 0 or 1, the next token overwrites one of the prompt.""",
        ),
        "KC4": mistake(
            both("{name}"),
            says="The whole memory came back; only the part that has been written should.",
            why="""Keys of zeros give scores of 0, and e⁰ is not 0: places that hold no token would get weight. Return the first
            `length` of them.""",
        ),
        "KC6": mistake(
            patch("end > self.max_len", "end >= self.max_len"),
            says="The last place is never filled: exactly max_len tokens should fit.",
            why="`end` is where the next token would go. It may be max_len: then the cache is full, and that is allowed.",
        ),
        "KC7": mistake(
            patch(
                "self.length = end", "pass", "if end > self.max_len", "self.length = end\n        if end > self.max_len"
            ),
            patch(
                FULL,
                """fits = self.max_len - start
            self.keys[:, :, start:] = k.detach()[:, :, :fits]
            self.values[:, :, start:] = v.detach()[:, :, :fits]
            self.length = self.max_len
            raise ValueError('full')""",
            ),
            says="""A refused append has changed the cache: its length, or some of its tokens; it should be refused whole, before anything
            is written.""",
            why="""Look first, then act: compare the length *after* the append with max_len. After a refusal the caller may go on with a
            shorter chunk, and it has to find the cache as it was.""",
        ),
        "KC8": mistake(
            patch(
                FULL,
                """over = end - self.max_len
            self.keys = self.keys.roll(-over, 2)
            self.values = self.values.roll(-over, 2)
            start, end = (start - over, self.max_len)""",
            ),
            patch(
                FULL,
                "pass",
                KEYS,
                "at = torch.arange(start, end, device=k.device) % self.max_len\n        self.keys[:, :, at] = k.detach()",
                VALUES,
                "self.values[:, :, at] = v.detach()",
                RETURN,
                "return (self.keys[:, :, :len(self)], self.values[:, :, :len(self)])",
                "return self.length",
                "return min(self.length, self.max_len)",
            ),
            says="A full cache forgot its oldest tokens; it should refuse what does not fit.",
            why="""A ring of fixed size is what sliding windows use (later in this lesson). It has to be asked for: a model that
            silently forgets how the text began writes on as if it had never been there.""",
        ),
        "KC10": (
            patch(KEYS, "self.keys[:, :, start:end] = v.detach()", VALUES, "self.values[:, :, start:end] = k.detach()"),
            patch(RETURN, "return (self.values[:, :, :end], self.keys[:, :, :end])"),
        ),
        "KC11": mistake(
            allocated("shape, device=device") + CARELESS,
            allocated("shape, dtype=dtype") + CARELESS,
            says="dtype or device has no effect: the memory holds float32, or lies on the default device, whatever was asked for.",
            why="""In 16 bits a cache takes half the memory. Held in float32 it also meets queries of another type, and the product of the
            two raises. Keys that are made on a GPU have to stay there: a cache in the other memory costs a trip for every token.""",
        ),
        "KC13": mistake(
            patch("return self.length", "return self.max_len"),
            patch("return self.length", "return len(self.keys)"),
            patch("return self.length", "return self.keys.shape[2]"),
            patch(
                "self.length = 0",
                "self.length, self.calls = (0, 0)",
                "self.length = end",
                "self.length, self.calls = (end, self.calls + 1)",
                "return self.length",
                "return self.calls",
            ),
            says="len(cache) gives a size of the memory, or how often append was called; it should be the number of tokens in it.",
            why="""`len` of a tensor is its first axis, here the batch. The number of tokens so far is the position of the next one,
            and a model asks for it at each step.""",
        ),
        "KC18": mistake(
            patch("\n        ".join(TAKEN), "self.keys = self.values = torch.zeros(shape, dtype=dtype, device=device)"),
            says="Keys and values share one memory: what is written second overwrites the first.",
            why="""`a = b = torch.zeros(…)` makes one tensor with two names. Keys and values have the same shape and need a memory
            each.""",
        ),
        "KV3": tuple(joined(f"torch.cat([{{old}}, {{new}}], dim={dim})") + CARELESS for dim in (1, 0, -1)),
    }
