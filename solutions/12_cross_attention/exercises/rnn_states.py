"""The states of a recurrent network, one token after the other."""

from __future__ import annotations

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

INPUT, PAST = "x[:, t] @ w_x", "state @ w_h"
STEP = f"torch.tanh({INPUT} + {PAST} + b)"
ZERO = "x.new_zeros(x.shape[0], w_h.shape[0])"
KEEP = "states.append(state)"
KEPT = f"state = {STEP}\n        {KEEP}"
TURNS = "range(x.shape[1])"
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
        "AB1": patch(PAST, "state @ w_h.T"),
        "RN7": mistake(
            patch("dim=1", "dim=0"),
            patch("torch.stack(states, dim=1)", "torch.stack(states).reshape(*x.shape[:2], -1)"),
            says="The states were stacked along axis 0, token by token; batch comes first: `torch.stack(states, dim=1)`.",
            why="""`torch.stack(states)` puts the new axis in front: (T, B, h). `nn.RNN` does the same unless `batch_first=True`. A
            reshape to (B, T, h) does not put it right: it keeps the order in memory and only cuts it elsewhere, so an item's row holds
            states of other items.""",
        ),
        "RN9": mistake(
            patch(" + b", ""),
            patch(STEP, f"torch.tanh({INPUT} + {PAST} + (b if t else 0))"),
            patch(f" + {PAST}", ""),
            patch(PAST, f"{ZERO} @ w_h"),
            patch(PAST, "state"),
            says="The past, its matrix w_h or the bias b was left out, of every step or of the first one; each step should add x_t w_x, "
            "h w_h and b.",
            why="""Without h w_h nothing is carried from token to token, and the last state knows the last word alone: the recurrence
            is this one term. w_h decides what of the past is kept and where it goes; added as it is, the past can only pile up. Where
            token and state are 0, the next state is tanh(b), not 0. A first step of its own, before the loop, easily forgets a term; a
            state of zeros before it needs no such step.""",
        ),
        "RN10": mistake(
            patch(STEP, f"{INPUT} + torch.tanh({PAST} + b)"),
            patch(STEP, f"torch.tanh({INPUT}) + {PAST} + b"),
            patch(STEP, f"torch.tanh({INPUT}) + torch.tanh({PAST} + b)"),
            patch(STEP, f"torch.tanh({INPUT} + {PAST}) + b"),
            patch("torch.tanh", ""),
            patch("torch.tanh", "torch.sigmoid"),
            patch("torch.tanh", "torch.relu"),
            patch(KEPT, f"state = {INPUT} + {PAST} + b\n        states.append(torch.tanh(state))"),
            patch(KEPT, f"state = {INPUT} + torch.tanh(state) @ w_h + b\n        {KEEP}"),
            says="tanh is missing, replaced by another function, or taken elsewhere; each state should be tanh of all three terms.",
            why="""Token, past and bias are added first, then bent together, once: tanh(x_t w_x + h w_h + b) is what comes back and what
            the next token meets. tanh keeps each number between −1 and 1. Without it, or with a ReLU, what the first of 30 tokens left
            is multiplied by w_h 29 times, and may grow without limit; a sigmoid, which a gate uses, gives no number below 0.""",
        ),
        "RN11": mistake(
            patch(KEPT, f"{KEEP}\n        state = {STEP}"),
            says="Each state was kept before its token was read: all of them are one step late, and the last token is lost.",
            why="Append after the update. The state at index t has read token t.",
        ),
        "RN14": mistake(
            patch(PAST, "state.detach() @ w_h"),
            patch(KEEP, f"{KEEP}\n        state = state.detach()"),
            says="The previous state was taken out of the graph: no gradient reaches earlier tokens.",
            why="""The numbers are right, and the network cannot learn to remember: an error at token 9 never finds out what token 2
            should have left in the state.""",
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
    }
