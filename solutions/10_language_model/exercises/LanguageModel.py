"""A language model around the block: two embeddings in front of it, a LayerNorm and a layer back to the vocabulary behind it."""

from typing import Any

import numpy as np

from grader.course.declare import Case, Tensor, exercise, mistake, patch

from .. import readings

TOKENS, PLACES, SUM = (
    "self.token(ids)",
    "self.position(torch.arange(ids.shape[1], device=ids.device))",
    "x = self.token(ids) + ",
)
BLOCKS, OUT = "for block in self.blocks:\n            x = block(x)", "return self.head(self.norm(x))"
LIST = "nn.ModuleList((TransformerBlock(d_model, num_heads, max_len) for _ in range(num_layers)))"
TOO_LONG = """if ids.shape[1] > self.max_len:
            raise ValueError(f'T = {ids.shape[1]} is longer than max_len = {self.max_len}')"""


def _state(rng: np.random.Generator, v: int, d: int, layers: int, max_len: int) -> dict[str, np.ndarray]:
    """Weights of every part, none of them neutral."""
    state = {
        "token.weight": rng.normal(size=(v, d)),
        "position.weight": rng.normal(size=(max_len, d)),
        "norm.weight": rng.uniform(0.5, 1.5, size=d),
        "norm.bias": 0.3 * rng.normal(size=d),
        "head.weight": 0.7 * rng.normal(size=(v, d)),
    }
    for block in (f"blocks.{i}." for i in range(layers)):
        state |= {
            f"{block}attn.qkv.weight": 0.6 * rng.normal(size=(3 * d, d)),
            f"{block}attn.proj.weight": 0.6 * rng.normal(size=(d, d)),
            f"{block}mlp.0.weight": 0.5 * rng.normal(size=(4 * d, d)),
            f"{block}mlp.2.weight": 0.5 * rng.normal(size=(d, 4 * d)),
            f"{block}mlp.0.bias": rng.normal(size=4 * d),
            f"{block}mlp.2.bias": rng.normal(size=d),
        }
        for name in ("ln1", "ln2"):
            state |= {
                f"{block}{name}.weight": rng.uniform(0.5, 1.5, size=d),
                f"{block}{name}.bias": 0.3 * rng.normal(size=d),
            }
    return {name: array.astype(np.float32) for name, array in state.items()}


@exercise(
    kind="class",
    points=3,
    minutes=15,
    difficulty=2,
    result_type="tensor",
    result_names=("logits",),
    forbids=("tampering",),
    rtol=1e-3,
    atol=1e-3,
    pair_runs=10,
)
class LanguageModel:
    """Turn ids into logits: embeddings of token and position, the blocks, a last LayerNorm, a layer to the vocabulary."""

    def cases(rng):
        def case(
            key: str, title: str, b: int, t: int, v: int, d: int, heads: int, layers: int, max_len: int, **options: Any
        ) -> Case:
            state = _state(rng, v, d, layers, max_len)
            built = {
                "init": (v, d, heads, layers, max_len),
                "state": state,
                "layers": layers,
                "linear": ("head",),
                "no_bias": ("head",),
            }
            ids = Tensor(rng.integers(0, v, size=(b, t)))
            return Case(
                key,
                title,
                (ids,),
                probe="probes.language_model",
                options=built | options,
                names=("ids",),
                reading=readings.model,
                costly=t > 16,
            )

        some = ("token.weight", "position.weight", "blocks.0.attn.qkv.weight", "norm.bias", "head.weight")
        yield case("small", "three tokens, one block of one head", 1, 3, 5, 4, 1, 1, 4)
        yield case("sizes", "all sizes different, three blocks of two heads", 2, 5, 7, 8, 2, 3, 6, gradients=some)
        yield case("seen-again", "the same sizes, new numbers", 2, 5, 7, 8, 2, 3, 6, gradients=some)
        yield case("full", "as many tokens as max_len", 3, 4, 6, 6, 3, 2, 4)
        earlier = tuple(rng.integers(0, 9, size=(b, t)) for b, t in ((1, 2), (3, 7), (2, 4)))
        yield case(
            "training",
            "in training mode, where there is no dropout, after calls with other ids and lengths",
            2,
            4,
            9,
            4,
            2,
            2,
            7,
            mode="train",
            earlier=earlier,
            gradients=some,
        )
        sizes = {"max_len": 5, "num_layers": 2, "num_heads": 2, "d_model": 4, "vocabulary": 6}
        yield case(
            "square",
            "as many rows as tokens, all sizes passed by name",
            4,
            4,
            6,
            4,
            2,
            2,
            5,
            init=(),
            init_kwargs=sizes,
        )
        yield case("one", "a single token, more rows than max_len", 4, 1, 5, 4, 2, 2, 3)
        yield case("long", "more than sixteen tokens", 1, 20, 5, 4, 1, 2, 24)
        for t, max_len in ((6, 5), (4, 2), (9, 3)):
            built = {"init": (7, 4, 2, 2, max_len)}
            yield Case(
                f"too-long-{t}",
                f"{t} tokens, max_len {max_len}",
                (Tensor(rng.integers(0, 7, size=(2, t))),),
                probe="module",
                raises="ValueError",
                options=built,
            )

    hints = (
        "What would the model know about the order of its tokens if only `token` were looked up?",
        "Five attributes in `__init__`; in `forward` x = token + position, then block after block, then head(norm(x)). Positions "
        "are 0 … T − 1: `torch.arange(T)`. Modules in an `nn.ModuleList` are found, those in a plain list are not.",
        "self.blocks = nn.ModuleList(TransformerBlock(____) for _ in range(____))\n"
        "x = self.token(ids) + self.position(torch.arange(____))\n"
        "for block in self.blocks:\n"
        "    x = ____\n"
        "return self.head(____)",
    )

    mistakes = {
        "PO2": (
            patch(
                "torch.arange(ids.shape[1], device=ids.device)", "torch.arange(1, ids.shape[1] + 1, device=ids.device)"
            ),
            patch(
                PLACES,
                "self.position(torch.arange(1, ids.shape[1] + 1, device=ids.device).clamp_max(self.max_len - 1))",
            ),
        ),
        "LM3": mistake(
            patch("self.norm(x)", "x"),
            patch(BLOCKS, f"x = self.norm(x)\n        {BLOCKS}", "self.norm(x))", "x)"),
            patch(BLOCKS, BLOCKS.replace("block(x)", "self.norm(block(x))"), "self.norm(x))", "x)"),
            patch(BLOCKS, BLOCKS.replace("block(x)", "self.norm(block(x))")),
            says="norm was left out, or applied in another place; it should be applied once, between the last block and head.",
            why="""Every block adds to x and none normalizes it, so that its numbers grow with the depth. Without the last
            normalization the logits do, too. Before the blocks it is not needed, since pre-norm blocks normalize what they read.
            Between them x is the residual stream: normalized on the way, what earlier blocks have added is scaled anew by each later
            one.""",
        ),
        "LM5": mistake(
            patch(BLOCKS, "x = self.blocks[0](x)"),
            patch(BLOCKS, "pass"),
            patch(BLOCKS, "for block in self.blocks:\n            y = block(x)\n        x = y"),
            patch(BLOCKS, "for block in self.blocks:\n            x = x + block(x)"),
            patch(SUM, "x = self.token(ids)\n        places = ", "x = block(x)", "x = block(x + places)"),
            says="A block was left out, or something was added between the blocks; each should be applied as x = block(x), and no more.",
            why="""A stack is a chain: x = block(x). A loop that overwrites y and never x applies the last block alone. The block of
            lesson 09 already returns x plus what it found: x + block(x) doubles x in every layer. And the positions that were added to x
            at the beginning are still in it at every block, since the residual stream carries them on.""",
        ),
        "LM6": mistake(
            patch(LIST, "[TransformerBlock(d_model, num_heads, max_len) for _ in range(num_layers)]"),
            says="The blocks are in a plain list, where the model does not find them.",
            why="""`parameters()`, `state_dict()` and `.to(device)` look into modules, `nn.ModuleList` and `nn.Sequential`, and not
            into lists. The optimizer would never hear of the blocks.""",
        ),
        "LM7": mistake(
            patch("bias=False)", "bias=False)\n        self.head.weight = self.token.weight"),
            patch("bias=False)", "bias=False)\n        self.token.weight = self.head.weight"),
            says="head and token share one weight; each should have its own.",
            why="""Tying them saves vocabulary · d_model parameters (Press and Wolf 2017), and GPT-2 does it. With 102
            characters there is little to save, and this model keeps them apart.""",
        ),
        "PJ2": patch(", bias=False)", ")"),
        "CM7": (
            patch(TOO_LONG, "pass"),
            patch(TOO_LONG, "", SUM, "ids = ids[:, -self.max_len:]\n        x = self.token(ids) + "),
        ),
        "LM10": mistake(
            patch(OUT, "return torch.softmax(self.head(self.norm(x)), dim=-1)"),
            patch(OUT, "return torch.log_softmax(self.head(self.norm(x)), dim=-1)"),
            says="The model returns probabilities or their logarithms; logits are asked for.",
            why="""The loss takes logits and does the softmax itself, more precisely. Softmax taken twice flattens everything.
            log_softmax taken twice changes no probability, but the result is no longer the logits.""",
        ),
        "LM11": mistake(
            patch(TOKENS, "self.token(ids) * self.token.embedding_dim ** 0.5"),
            says="The token embeddings were multiplied by √d_model; they should be added as they are.",
            why="""Vaswani et al. 2017 (section 3.4) do so, with tied weights and fixed positions. Learned embeddings find their own
            scale.""",
        ),
        "LM13": mistake(
            patch(PLACES, "self.position(torch.arange(ids.shape[0], device=ids.device))[:, None]"),
            patch(PLACES, "self.position(torch.arange(ids.shape[0], device=ids.device) % self.max_len)[:, None]"),
            patch(PLACES, "self.position(ids % self.max_len)"),
            patch(PLACES, "self.position(ids.clamp_max(self.max_len - 1))"),
            patch(PLACES, "self.position.weight[-ids.shape[1]:]"),
            patch(PLACES, "self.position(torch.arange(self.max_len - ids.shape[1], self.max_len, device=ids.device))"),
            says="""position was looked up by the rows of the batch, by the ids, or from its end; it should be looked up by the
            tokens' places, 0 … T − 1.""",
            why="""ids is (B, T): the places are along axis 1. With `ids.shape[0]` every token of a row gets the same embedding. A
            place that follows from the id adds nothing to what the token embedding says. The last T rows of the table are another
            part of it for every length: the first token would stand at position max_len − T.""",
        ),
        "LM15": mistake(
            patch(LIST, "nn.ModuleList([TransformerBlock(d_model, num_heads, max_len)] * num_layers)"),
            says="One block is in the list num_layers times: all layers share their weights.",
            why="""`[block] * n` is n times the same object. A comprehension makes a new block each time.""",
        ),
    }
