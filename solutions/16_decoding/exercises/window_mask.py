"""A causal mask that forgets: the last tokens of each query, and the first ones of the text."""

from grader.course.declare import Case, exercise, holds, mistake, patch

MASK = "(j <= p) & ((p - j < window) | (j < sinks))"


@exercise(points=2, minutes=10, difficulty=2, result_type="tensor", dtype=("bool",))
class window_mask:
    """Say for each query which keys lie in its window or among the sinks, and not in its future."""

    def cases(rng):
        for t, window in ((4, 2), (5, 1), (6, 3), (3, 9), (1, 1), (7, 2)):
            yield Case(f"square-{t}-{window}", f"{t} queries and keys, a window of {window}", (t, t, window))
        for t_q, t_k, window in ((2, 6, 3), (1, 7, 4), (3, 8, 1), (5, 9, 20), (20, 40, 7)):
            yield Case(f"cache-{t_q}-{t_k}", f"{t_q} queries, {t_k} keys, a window of {window}", (t_q, t_k, window))
        for t_q, t_k, window, sinks in ((7, 7, 2, 2), (2, 9, 3, 1), (1, 8, 2, 4), (6, 6, 4, 3), (3, 130, 5, 2)):
            title = f"{t_q} queries, {t_k} keys, a window of {window}, {sinks} sinks"
            yield Case(f"sinks-{t_q}-{t_k}", title, (t_q, t_k, window), {"sinks": sinks})
        yield Case("seen-again", "sizes that had a sink before, without one", (2, 9, 3))
        yield Case("all-sinks", "more sinks than keys", (3, 5, 1, 9))
        t_q, more, window = (int(n) for n in rng.integers(2, 7, size=3))
        yield Case("random", "sizes drawn at random", (t_q, t_q + more, window, 2))

    @holds("each query sees itself")
    def itself(case, parts):
        mask = parts["result"].astype(bool)
        t_q, t_k = mask.shape
        blind = [i for i in range(t_q) if t_k >= t_q and not mask[i, i + t_k - t_q]]
        return f"query {blind[0]}, at position {blind[0] + t_k - t_q}, does not." if blind else None

    @holds("no query sees a later key")
    def causal(case, parts):
        mask = parts["result"].astype(bool)
        t_q, t_k = mask.shape
        for i in range(t_q):
            later = mask[i, max(0, i + t_k - t_q + 1) :]
            if later.any():
                p = i + t_k - t_q
                return f"query {i}, at position {p}, sees key {p + 1 + int(later.argmax())}."
        return None

    hints = (
        "With 2 queries and 6 keys, at which positions are the two queries?",
        "p is a column of positions and j a row of keys. Three comparisons, joined by & and |, each in parentheses.",
        "p = torch.arange(t_q)[:, None] + ____\nj = torch.arange(____)[None, :]\nreturn (j <= p) & ((p - j ____ window) | (____))",
    )

    mistakes = {
        "SW1": (
            patch("p - j < window", "p - j <= window"),
            patch("p - j < window", "p - j < window - 1"),
            patch("p - j < window", "p - j < max(window - 1, 1)"),
            patch("p - j < window", "p - j < (window + 1) // 2"),
            patch("p - j < window", "p - j <= window // 2"),
        ),
        "MK14": patch("[:, None] + t_k - t_q", "[:, None]"),
        "WM3": mistake(
            patch("(j <= p) & ", ""),
            patch(MASK, "(torch.abs(p - j) < window) | (j < sinks)"),
            patch(MASK, "(torch.abs(p - j) < window) | ((j <= p) & (j < sinks))"),
            says="The mask is not causal: a query sees keys that come after it.",
            why="""p − j < window holds for every later key, since p − j is negative there. The window limits the past; j ≤ p cuts the
            future off.""",
        ),
        "WM4": mistake(
            patch(MASK, "(j <= p) & (p - j < window) | (j < sinks)"),
            says="A sink is seen before it has been written: j ≤ p should hold for sinks as well.",
            why="""Query 0 cannot see key 1, sink or not. In Python & binds more tightly than |, so without parentheses the causal
            condition belongs to the window alone.""",
        ),
        "WM5": mistake(
            patch(" | (j < sinks)", ""),
            patch("(p - j < window) | (j < sinks)", "(p - j < window) & (j >= sinks)"),
            says="The sinks were left out or hidden; the first tokens should stay visible, however far back.",
            why="""Trained models put much of their weight on the first tokens, whatever they say: a place where weight may go when
            nothing in the window deserves it. Once these fall out of the window, the weight has to go somewhere else, and the text falls
            apart (Xiao et al. 2024).""",
        ),
        "WM7": mistake(
            patch("p - j < window", "p - j < window - sinks"),
            patch("p - j < window", "p - j < max(window - sinks, 1)"),
            patch("(p - j < window) | (j < sinks)", "(p - j < window + sinks)"),
            says="""The sinks made the window shorter or longer; it should stay as it is, and the first tokens be seen besides, however
            far back.""",
            why="""Some caches of fixed size share their places between sinks and recent tokens. Here the window is what is recent, and
            the sinks come on top of it. For short texts a longer window looks the same; a sink stays visible when thousands of tokens lie
            in between.""",
        ),
        "WM14": mistake(
            patch("(p - j < window) | (j < sinks)", "(p - j < window) & ((j < sinks) | (sinks == 0))"),
            patch("(p - j < window) | (j < sinks)", "(p - j < window) & (j < sinks)"),
            says="Window and sinks were joined by *and*; a key should be visible in the window *or* among the sinks.",
            why="""`&` leaves only the sinks that are still in the window. Once the text is longer than window + sinks there is none, and
            the query sees nothing at all.""",
        ),
        "WM9": mistake(
            patch("j < sinks", "j >= t_k - sinks"),
            patch("j < sinks", "j <= sinks"),
            patch("j < sinks", "p < sinks"),
            says="""Other tokens were taken for sinks: one key more, the last keys, or the first queries; sinks are the keys j < sinks,
            for every later query.""",
            why="""Keys are counted from 0, so `sinks` keys are those with j < sinks; with sinks = 0 there is none. The last keys are in
            the window anyway: what falls out of it first is the beginning of the text. And `p < sinks` is a condition on rows, `j <
            sinks` one on columns: query 100 should still see key 0.""",
        ),
        "MK1": patch(f"return {MASK}", f"return ~({MASK})"),
        "MK7": patch("(j <= p) &", "(j < p) &"),
        "MK8": patch("(j <= p) &", "(j <= p + 1) &"),
        "MA2": (
            *(patch(f"return {MASK}", f"return ({MASK}).{kind}()") for kind in ("float", "long", "int", "byte")),
            patch(f"return {MASK}", f"return torch.zeros(t_q, t_k).masked_fill(~({MASK}), -torch.inf)"),
        ),
        "WM15": mistake(
            patch("+ t_k - t_q", "+ t_k - t_q - 1"),
            patch("+ t_k - t_q", "+ t_k - t_q + 1"),
            patch("+ t_k - t_q", "+ 2 * (t_k - t_q)"),
            patch("+ t_k - t_q", "+ t_q - t_k"),
            patch("p - j < window", "p - (t_k - t_q) - j < window"),
            says="Query i should be at position i + t_k − t_q, for the causal mask as for the window; another shift was used, or none.",
            why="""With 6 keys and 2 queries, the queries are at positions 4 and 5: the last of them is at the last position. A place too
            early, a query does not see itself; a place too late, or with t_k − t_q added twice, it sees keys that come after it. A window
            that is counted from the query's number i reaches back over the whole text: i − j is at most 1, whatever the key.""",
        ),
        "WM18": mistake(
            patch("p - j < window", "p // window == j // window"),
            says="The text was cut into blocks of `window` tokens; the window should slide, so that it ends at each query.",
            why="""In blocks of 3 the token at position 3 sees itself alone, and the one at position 5 three tokens. A window of 3
            gives both the last three: p − j < 3.""",
        ),
    }
