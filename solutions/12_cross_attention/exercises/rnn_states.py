"""The states of a recurrent network, one token after the other."""

from __future__ import annotations

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

INPUT, PAST = "x[:, t] @ w_x", "state @ w_h"
STEP = f"torch.tanh({INPUT} + {PAST} + b)"
ZERO = "x.new_zeros(x.shape[0], w_h.shape[0])"
KEEP = "states.append(state)"
KEPT = f"state = {STEP}\n        {KEEP}"
ALL, TURNS = "torch.stack(states, dim=1)", "range(x.shape[1])"
WIDTH = 4  # of the states in the cases 'batch' and 'later token'


@exercise(points=2, minutes=10, difficulty=2, result_type="tensor", forbids=("recurrent",))
class rnn_states:
    """Read a sequence token by token, and keep the state after each of them."""

    def cases(rng):
        def case(
            key: str, title: str, b: int, t: int, d: int, h: int, grad: bool = True, scale: float = 1.0, **more
        ) -> Case:
            shapes = (b, t, d), (d, h), (h, h), (h,)
            arrays = [(scale * rng.normal(size=shape)).astype(np.float32) for shape in shapes]
            return Case(key, title, tuple(Tensor(array, None, grad) for array in arrays), **more)

        one = [np.array(array, dtype=np.float32) for array in ([[[1], [0], [0]]], [[1]], [[0.5]], [0])]
        yield Case("small", "one number a token: 1, 0, 0, remembered by half", tuple(Tensor(array) for array in one))
        batch = case("batch", "two sequences of five tokens, every size different", 2, 5, 3, WIDTH)
        yield batch
        x, *weights = (tensor.array for tensor in batch.args)
        later = np.concatenate([x[:, :3], rng.normal(size=(2, 2, 3)).astype(np.float32)], axis=1)
        yield Case(
            "later token",
            "the same with other tokens from the fourth on",
            tuple(Tensor(array) for array in (later, *weights)),
        )
        yield case("seen-again", "the same sizes, new numbers", 2, 5, 3, WIDTH)
        yield case("square", "as many items as tokens, tokens as wide as states", 4, 4, 4, 4)
        yield case("one token", "sequences of a single token", 3, 1, 2, 5, grad=False)
        yield case("one item", "a batch of one", 1, 6, 4, 3)
        yield case("one number", "states of one number", 2, 4, 3, 1)
        yield case("long", "thirty tokens, a small step each", 2, 30, 3, 6, scale=0.4, show=False)
        yield case(
            "saturated", "sums far from 0, where tanh is flat", 3, 4, 2, 6, grad=False, scale=6.0, stage="extremes"
        )
        # tanh(2 · 0.957) = 0.957: what the first token leaves stays.
        kept = [np.array(array, dtype=np.float32) for array in ([[[1]] + 69 * [[0]]], [[1]], [[2]], [0])]
        title = "seventy tokens, the first of which is remembered to the end"
        yield Case("kept", title, tuple(map(Tensor, kept)), stage="extremes", show=False, watched=False)

    @holds("a state depends only on the tokens of its sequence up to its own", cases=("batch", "later token"))
    def past_alone(case, parts, other, changed):
        gap = np.abs(parts["result"][:, :3] - changed["result"][:, :3]).max()
        return (
            None
            if gap < 1e-5
            else f"In a second call with the same first three tokens, one of their states changed by {gap:.4g}."
        )

    hints = (
        "Which two things does the state after token t depend on, and what takes the place of the second of them at token 0?",
        "A loop over t. `state` starts as zeros of shape (B, h); each turn makes it anew from `x[:, t]` and the old `state`, and "
        "appends it to a list. `torch.stack(states, dim=1)` puts the tokens back on axis 1.",
        "state = torch.zeros(B, h)\nstates = []\nfor t in range(T):\n    state = torch.tanh(x[:, t] @ ____ + ____ @ w_h + b)\n"
        "    states.append(state)\nreturn torch.stack(states, dim=____)",
    )

    mistakes = {
        "RN1": mistake(
            patch(f" + {PAST}", ""),
            patch(PAST, f"{ZERO} @ w_h"),
            says="The previous state is left out: each token is read as if it were the first.",
            why="""Without state @ w_h nothing is carried from token to token, and the last state knows the last word alone. The
            recurrence is this one term.""",
        ),
        "RN2": mistake(
            patch("torch.tanh", ""),
            says="tanh is missing, so states can grow without limit.",
            why="""Without tanh, what the first of 30 tokens left is multiplied by w_h 29 times, and may grow without limit. tanh keeps
            each number between −1 and 1.""",
        ),
        "AL10": (patch("torch.tanh", "torch.sigmoid"), patch("torch.tanh", "torch.relu")),
        "AB1": patch(PAST, "state @ w_h.T"),
        "RN6": mistake(
            patch(ALL, "state"),
            says="The last state alone was returned; the state after every token was asked for.",
            why="The last state is the one vector that the first translators had. Attention looks back at all of them.",
        ),
        "RN7": mistake(
            patch("dim=1", "dim=0"),
            patch("torch.stack(states, dim=1)", "torch.stack(states).reshape(*x.shape[:2], -1)"),
            says="The states were stacked along axis 0, token by token; batch comes first: `torch.stack(states, dim=1)`.",
            why="""`torch.stack(states)` puts the new axis in front: (T, B, h). `nn.RNN` does the same unless `batch_first=True`. A
            reshape to (B, T, h) does not put it right: it keeps the order in memory and only cuts it elsewhere, so an item's row holds
            states of other items.""",
        ),
        "RN8": mistake(
            patch(TURNS, f"reversed({TURNS})", ALL, "torch.stack(states[::-1], dim=1)"),
            patch(TURNS, f"reversed({TURNS})"),
            says="The sequence is read from its end.",
            why="""That is the second half of a bidirectional network. Here the state after token t has read the tokens 0 to t and no
            later one.""",
        ),
        "RN9": mistake(
            patch(" + b", ""),
            patch(STEP, f"torch.tanh({INPUT} + {PAST} + (b if t else 0))"),
            says="The bias b is left out, of every step or of the first one; each step adds it.",
            why="""Where token and state are 0, the next state is tanh(b), not 0. A first step of its own, before the loop, easily forgets
            a term; a state of zeros before it needs no such step.""",
        ),
        "RN10": mistake(
            patch(STEP, f"{INPUT} + torch.tanh({PAST} + b)"),
            patch(STEP, f"torch.tanh({INPUT}) + {PAST} + b"),
            patch(STEP, f"torch.tanh({INPUT}) + torch.tanh({PAST} + b)"),
            patch(STEP, f"torch.tanh({INPUT} + {PAST}) + b"),
            says="tanh was taken of parts of the sum; it should be taken of all three terms together.",
            why="Token, past and bias are added first, then bent together: tanh(x_t w_x + h w_h + b).",
        ),
        "RN11": mistake(
            patch(KEPT, f"{KEEP}\n        state = {STEP}"),
            says="Each state was kept before its token was read: all of them are one step late, and the last token is lost.",
            why="Append after the update. The state at index t has read token t.",
        ),
        "RN12": mistake(
            patch("states = []", "states = [state]"),
            says="The state before the first token was returned as well: T + 1 states came, T were asked for.",
            why="The zeros of the beginning serve the first step alone. The result holds one state for each token.",
        ),
        "RN13": mistake(
            patch(ZERO, "x.new_ones(x.shape[0], w_h.shape[0])"),
            says="The state before the first token was set to 1; it should be 0.",
            why="Before anything has been read there is nothing to remember; the network starts from zeros.",
        ),
        "RN14": mistake(
            patch(PAST, "state.detach() @ w_h"),
            patch(KEEP, f"{KEEP}\n        state = state.detach()"),
            says="The previous state was taken out of the graph: no gradient reaches earlier tokens.",
            why="""The numbers are right, and the network cannot learn to remember: an error at token 9 never finds out what token 2
            should have left in the state.""",
        ),
        "RN15": mistake(
            patch(PAST, "state"),
            says="The previous state was added as it is: w_h is not used.",
            why="w_h decides what of the past is kept and where it goes. Added as it is, the past can only pile up.",
        ),
        "RN16": mistake(
            patch(f"{INPUT} + {PAST}", f"{INPUT} * ({PAST})"),
            says="Token and past were multiplied; they should be added.",
            why="The first state is 0, so the first product is 0 whatever the token is: nothing but the bias gets through.",
        ),
        "RN17": mistake(
            *(
                patch(TURNS, "range(x.shape[0])", INPUT, "x[t] @ w_x", ZERO, "x.new_zeros(x.shape[1], w_h.shape[0])")
                + joined
                for joined in (patch("dim=1", "dim=0"), patch())
            ),
            says="The loop ran over the items of the batch; it should run over the tokens, `x[:, t]`.",
            why="""x has the shape (B, T, d), and `for x_t in x` or `x[t]` goes along its first axis, the batch. Each state is then made
            of the same token of another sentence.""",
        ),
        "RN18": mistake(
            *(patch(ALL, f"torch.cat(states{axis})") for axis in ("", ", dim=1")),
            says="The states were joined by `cat`, which makes no new axis; `torch.stack(states, dim=1)` makes one for the tokens.",
            why="""Each state is (B, h). `cat` joins them along an axis that they have, to (T·B, h) or (B, T·h); `stack` puts them side by
            side along a new one: (B, T, h).""",
        ),
        "RN19": mistake(
            patch(
                ZERO,
                "x.new_zeros(w_h.shape[0])",
                f"for t in {TURNS}",
                "for token in x.flatten(0, 1)",
                INPUT,
                "token @ w_x",
                ALL,
                "torch.stack(states).unflatten(0, x.shape[:2])",
            ),
            says="The state was carried from one item of the batch to the next; each item should start from 0.",
            why="""The items of a batch are sequences of their own. If a loop goes over them, the state is set to 0 inside of it, before
            the first token of each.""",
        ),
        "RN21": mistake(
            patch(KEPT, f"state = {INPUT} + {PAST} + b\n        states.append(torch.tanh(state))"),
            patch(KEPT, f"state = {INPUT} + torch.tanh(state) @ w_h + b\n        {KEEP}"),
            says="tanh was taken of only one of two: of the states that came back, or of the state that is carried on. Both should be the "
            "same state.",
            why="""The state after token t is tanh(x_t w_x + h w_h + b): that is what the next token meets and what attention looks back
            at later. Bend it once, before it is kept.""",
        ),
        "RN22": mistake(
            patch(STEP, f"state + {STEP}"),
            says="The new state was added to the old one; it should take its place.",
            why="""The past enters through h w_h, inside tanh. Added as well, it piles up: after T tokens a number can be as large as T,
            where tanh keeps it between −1 and 1.""",
        ),
    }
