"""Cross entropy, the mean surprise of a model about each next token: what it is trained to lower."""

import numpy as np

from grader.course.declare import Case, Tensor, exercise, holds, mistake, patch

LOGITS, TARGETS = "logits[:, :-1].flatten(0, 1)", "ids[:, 1:].flatten()"
CALL = f"F.cross_entropy({LOGITS}, {TARGETS})"
WEIGHTS = f"torch.softmax({LOGITS}, dim=-1)"
PICKED = f"gather(1, {TARGETS}[:, None])"


@exercise(points=2, minutes=8, difficulty=2, result_type="tensor")
class next_token_loss:
    """Say how surprised a model is, on average, by the token that follows each position."""

    def cases(rng):
        def case(key, title, b, t, v, size=1.0, grad=True, **more):
            logits = Tensor((size * rng.normal(size=(b, t, v))).astype(np.float32), None, grad)
            return Case(key, title, (logits, Tensor(rng.integers(0, v, size=(b, t)))), **more)

        yield case("small", "one row of three tokens", 1, 3, 4, grad=False)
        yield case("sizes", "all sizes different", 3, 5, 7)
        yield case("seen-again", "the same sizes, new numbers", 3, 5, 7)
        yield case("two", "two tokens: one question a row", 4, 2, 3)
        yield case("square", "as many tokens as there are in the vocabulary", 2, 6, 6)
        yield case("long", "more than sixteen tokens", 2, 20, 5)
        yield case("sure", "logits of 30 and more", 2, 7, 5, size=30.0)
        flat = np.zeros((2, 4, 8), np.float32)
        yield Case("flat", "all logits 0", (Tensor(flat, None, True), Tensor(rng.integers(0, 8, size=(2, 4)))))
        told = rng.integers(0, 5, size=(2, 6))
        known = 20.0 * np.eye(5)[np.roll(told, -1, axis=1)]
        known[:, -1] = 0  # of what comes after the row nothing is known
        yield Case(
            "known", "a model that knows each next token", (Tensor(known.astype(np.float32), None, True), Tensor(told))
        )
        for i, shift in enumerate((1e4, -1e4, 9e3)):
            logits = np.where(rng.random(size=(2, 4, 6)) < 0.5, shift, -shift) + rng.integers(-2, 3, size=(2, 4, 6))
            args = Tensor(logits.astype(np.float32), None, True), Tensor(rng.integers(0, 6, size=(2, 4)))
            yield Case(f"large-{i}", "logits of ±10,000", args, stage="extremes", rtol=1e-3)
        logits = rng.normal(size=(2, 4, 6)) + np.array([0, 5000, -300, 0])[:, None]
        args = Tensor(logits.astype(np.float32), None, True), Tensor(rng.integers(0, 6, size=(2, 4)))
        yield Case("levels", "each position's logits at a level of their own", args, stage="extremes", rtol=1e-3)

    @holds("a model without any opinion pays ln V", cases=("flat",))
    def flat(case, parts):
        loss, v = float(parts["result"]), case.args[0].array.shape[-1]
        return (
            None
            if abs(loss - np.log(v)) < 1e-3
            else f"with {v} equal logits the loss is {loss:.4g}; ln {v} is {np.log(v):.4g}."
        )

    @holds("a model that knows every next token pays next to nothing", cases=("known",))
    def known(case, parts):
        loss = float(parts["result"])
        return (
            None
            if abs(loss) < 0.01
            else f"the loss is {loss:.4g}, and position t gives token t + 1 nearly all the weight."
        )

    hints = (
        "Which token do the logits at position t predict? And which logits have no token to be compared with?",
        "Leave out the last logits and the first id; then the logits line up with the tokens they predict. `F.cross_entropy` takes "
        "(N, V) and (N,): flatten both.",
        "predicted = logits[:, ____].flatten(0, 1)  # (B·(T−1), V)\n"
        "asked = ids[:, ____].flatten()  # (B·(T−1),)\n"
        "return F.cross_entropy(predicted, asked)",
    )

    mistakes = {
        "NL1": mistake(
            patch(CALL, "F.cross_entropy(logits.flatten(0, 1), ids.flatten())"),
            patch(CALL, "F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, :-1].flatten())"),
            patch(CALL, "F.cross_entropy(logits[:, 1:].flatten(0, 1), ids[:, 1:].flatten())"),
            patch("logits[:, :-1]", "logits[:, 1:]", "ids[:, 1:]", "ids[:, :-1]"),
            says="Each position was asked for its own token, or for the one before; it should be asked for the next one.",
            why="""Both are in the input, so the model can copy them: the loss falls towards 0 and nothing is learned. The first
            logits are about the second token: logits[:, :-1] against ids[:, 1:].""",
        ),
        "NL3": mistake(
            patch(TARGETS, f"{TARGETS}, reduction='sum'"),
            patch(CALL, f"F.cross_entropy({LOGITS}, {TARGETS}, reduction='sum') / ids.shape[0]"),
            patch(CALL, f"F.cross_entropy({LOGITS}, {TARGETS}, reduction='sum') / ids.numel()"),
            patch(CALL, "F.cross_entropy(logits[:, -2], ids[:, -1])"),
            says="The surprises are not averaged over the B·(T − 1) questions.",
            why="""A sum grows with the batch and with the length, and the learning rate would have to shrink with
            them. Of T tokens T − 1 are asked for: the first one has nothing before it. A causal model answers all of them in one pass;
            with the last one alone it would learn only about contexts of full length.""",
        ),
        "NL4": mistake(
            patch(CALL, "F.cross_entropy(logits[:, :-1], ids[:, 1:])"),
            patch(CALL, f"F.cross_entropy(logits[:, :-1].reshape(logits.shape[-1], -1).mT, {TARGETS})"),
            patch(CALL, "F.cross_entropy(logits[:, :-1].reshape(len(ids), -1, ids.shape[1] - 1), ids[:, 1:])"),
            says="`F.cross_entropy` takes the vocabulary from axis 1: flatten to (N, V) and (N,), or exchange the last two axes.",
            why="""Of (B, T, V) it would take T for the vocabulary. Either flatten batch and tokens into one axis, or hand over
            logits.transpose(1, 2), also written `.mT`. A `reshape` to (B, V, T) keeps the order in memory and only cuts the rows
            elsewhere: it mixes logits of different tokens.""",
        ),
        "NL5": mistake(
            patch(LOGITS, f"torch.softmax({LOGITS}, dim=-1)"),
            says="Softmax is taken twice: `F.cross_entropy` takes logits and does it itself.",
            why="""The second softmax sees numbers between 0 and 1, so that no weight can differ from another by more
            than a factor of e. The loss can't fall below about ln(1 + (V − 1)/e).""",
        ),
        "NL7": mistake(
            patch(LOGITS, "logits.flatten(0, 1)[:-1]", TARGETS, "ids.flatten()[1:]"),
            patch(CALL, "F.cross_entropy(logits.flatten(0, 1), ids.roll(-1, dims=1).flatten())"),
            patch(CALL, "F.cross_entropy(logits.mT, ids.roll(-1, dims=1))"),
            says="The last position of a row is asked for a token of the next row, or for its own row's first; it should be left out.",
            why="""After the last token of a row comes one that is not there: there are T − 1 questions, not T. Flatten after the
            shift, not before: rows of a batch are windows from anywhere in the text, and none of them goes on in another. `roll`
            moves what falls out at one end in at the other.""",
        ),
        "NL8": mistake(
            patch(CALL, f"{CALL} / torch.tensor(2.0).log()"),
            patch(CALL, f"{CALL}.exp()"),
            says="The loss was converted, to bits or to the perplexity e^loss; the mean surprise itself is asked for, in nats.",
            why="""A bit is ln 2 = 0.69 nats. Both are used; what matters is not to compare one with the other. Perplexity reads
            well, as the number of equally likely tokens, but its gradient grows with it.""",
        ),
        "NL9": mistake(
            patch(CALL, f"-{WEIGHTS}.log().{PICKED}.mean()"),
            patch(CALL, f"-{WEIGHTS}.{PICKED}.log().mean()"),
            *(
                patch(CALL, f"-({WEIGHTS}.{PICKED} + {small}).log().mean()")
                for small in ("1e-9", "1e-8", "1e-10", "1e-12")
            ),
            patch(CALL, f"-(({LOGITS}).exp() / ({LOGITS}).exp().sum(dim=-1, keepdim=True)).{PICKED}.log().mean()"),
            patch(CALL, f"-(({LOGITS}).exp() / ({LOGITS}).exp().sum(dim=-1, keepdim=True)).log().{PICKED}.mean()"),
            patch(CALL, f"(({LOGITS}).exp().sum(dim=-1).log() - ({LOGITS}).{PICKED}.squeeze(1)).mean()"),
            says="""The weights, or the exponentials they are made of, leave the range of float32, or a small number was added to keep them
            from 0: take log_softmax of the logits.""",
            why="""float32 ends near e^88.7: exp of a logit above that is ∞, and ∞/∞ is NaN. softmax rounds e^(−1000) to 0, whose
            logarithm is −∞, and the gradient is NaN. A small number added to the weight only caps the loss: −log(1e-9) is 20.7, so a
            token that the model holds for e^(−100) costs no more than that, and next to no gradient comes back.

            log_softmax subtracts the maximum first and never makes the weight; `F.cross_entropy` uses it.""",
        ),
        "NL12": mistake(
            patch(TARGETS, f"{TARGETS}, ignore_index=0"),
            says="Token 0 was left out as if it were padding; it should count like every other token.",
            why="""`ignore_index=0` is right where id 0 means padding. In this vocabulary it is the first character.""",
        ),
        "NL19": mistake(
            patch(CALL, f"F.nll_loss({LOGITS}, {TARGETS})"),
            patch(CALL, f"F.nll_loss({WEIGHTS}, {TARGETS})"),
            says="`F.nll_loss` was not given log-probabilities: give it log_softmax of the logits, or use `F.cross_entropy`.",
            why="""`F.nll_loss` only picks −x[target] and takes the mean; softmax and logarithm are left to the caller. Of logits it gives
            a loss that falls without end as they grow, of probabilities one between −1 and 0. `F.cross_entropy` is log_softmax and
            nll_loss in one.""",
        ),
    }
