"""Lesson 07: what is said of the mistakes that only this lesson knows."""

from grader.model import MistakeText

TEXTS = (
    MistakeText("PO1", "An odd width is not refused with ValueError.",
        "Both encodings work on pairs of columns, and an odd width leaves one column alone. Without a check the failure comes "
        "later, as a message about shapes, or not at all where something broadcasts.",
        "angles = positions[:, None] * frequencies",
        'if d % 2:\n    raise ValueError(f"the width must be even, got {d}")'),
    MistakeText("PO2", "Every position is one too large: the first token stands at position 0.",
        "Counting from 1 shifts the whole table by a row. Distances stay right, so attention hardly notices, until weights or "
        "positions meet code that counts from 0.",
        "positions = torch.arange(1, n_positions + 1)", "positions = torch.arange(n_positions)"),
    MistakeText("PO3", "The base is ignored: 10000 is written into the code.",
        "The base sets how slowly the slowest pair turns. Models for long texts raise it, RoPE with 500000 for example, so it is "
        "a parameter, and 10000 only its default.",
        "frequencies = 10000.0 ** (-torch.arange(0, d, 2) / d)", "frequencies = base ** (-torch.arange(0, d, 2) / d)"),
    MistakeText("PO4", "Sine and cosine are exchanged.",
        "At position 0 every angle is 0, where the sine is 0 and the cosine 1. The encoding's first row is therefore 0, 1, 0, 1, …; "
        "and a rotation by 0 must leave a vector as it is.",
        "torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(-2)",
        "torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)"),
    MistakeText("PO5", "The angle is converted between degrees and radians; it already is in radians.",
        "`torch.sin` and `torch.cos` take radians, and position times frequency is meant as radians. Converting divides or "
        "multiplies every angle by 57.3.",
        "angles = torch.deg2rad(positions[:, None] * frequencies)", "angles = positions[:, None] * frequencies"),
    MistakeText("PO6", "The exponent lost its factor 2: with i counting pairs, it is 2i/d.",
        "With i = 0, 1, …, d/2 − 1 the exponent 2i/d runs from 0 to nearly 1, and the slowest frequency is nearly 1/base. With "
        "i/d it ends at one half: the slowest pair turns √base times as fast as it should.",
        "frequencies = base ** (-torch.arange(d // 2) / d)", "frequencies = base ** (-2 * torch.arange(d // 2) / d)"),
    MistakeText("PO7", "The exponent has the wrong sign: the angles grow with the column.",
        "Position times base^(2i/d) turns faster from pair to pair, up to thousands of turns a step. Neighbouring positions "
        "then look unrelated. The position is divided by that power.",
        "angles = positions[:, None] * base ** (i / d)", "angles = positions[:, None] / base ** (i / d)"),
    MistakeText("PO8", "Rows and columns are exchanged: a row belongs to a position.",
        "The table is added to embeddings of shape (T, d_model), so row p must hold all numbers of position p.",
        "return encoding.T", "return encoding"),
    MistakeText("PO9", "Every column is a sine; the odd columns are cosines.",
        "A sine alone does not tell a quarter turn from the next. Sine and cosine of one angle together fix the point on the "
        "circle, and only then does a shift become a rotation.",
        "angles.sin().repeat_interleave(2, dim=-1)",
        "torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)"),
    MistakeText("PO10", "The positions given are not used: the tokens are counted from 0.",
        "The tokens of x need not be the first of their sequence, nor in order. A model that has already read 37 tokens rotates the "
        "next one by position 37; counted from 0 it would stand at the beginning.",
        "angles = torch.arange(x.shape[-2])[:, None] * frequencies", "angles = positions[:, None] * frequencies"),
    MistakeText("PO11", "The rotation turns clockwise: the minus sign stands at the other sine.",
        "(a cos θ − b sin θ, a sin θ + b cos θ) turns counter-clockwise by θ. With the minus in the second line it turns by −θ. "
        "Lengths and relative angles hold, so a model trained so works; with other weights it does not.",
        "new_a, new_b = a * cos + b * sin, b * cos - a * sin", "new_a, new_b = a * cos - b * sin, a * sin + b * cos"),
    MistakeText("PO12", "The pairs are rotated rightly and put back in another order.",
        "Neighbours 2i and 2i + 1 were taken apart, so they must become neighbours again. Joined by `cat`, all first members come "
        "before all second ones.",
        "torch.cat((new_a, new_b), dim=-1)", "torch.stack((new_a, new_b), dim=-1).flatten(-2)"),
    MistakeText("PO13", "The positions run along the wrong axis: in x (..., T, d) the tokens are the last axis but one.",
        "Angles of shape (T, d/2) broadcast against (..., T, d/2) as they are. With an axis put between them they meet the axis "
        "before T: an error mostly, and silently wrong where that axis has T entries too.",
        "angles = (positions[:, None] * frequencies)[:, None, :]", "angles = positions[:, None] * frequencies"),
    MistakeText("PO14", "The numbers are right and the graph is cut: no gradient reaches x.",
        "Rotated queries and keys must carry gradients back to the projections that made them. `detach()`, `.data`, "
        "`torch.no_grad()` and `torch.tensor(...)` of a tensor all cut the graph.",
        "result = torch.zeros_like(x)\nresult[..., 0::2] = new_a.detach()", "torch.stack((new_a, new_b), dim=-1).flatten(-2)"),
    MistakeText("PO15", "All pairs turn at the same speed: each has its own frequency.",
        "One frequency returns to where it was after 2π positions and says nothing beyond. The slow pairs tell far positions "
        "apart: pair i turns by base^(−2i/d) a step.",
        "angles = positions[:, None].expand(-1, d // 2)", "angles = positions[:, None] * frequencies"),
    MistakeText("PO16", "Both halves have a minus sign; only the first has one: (a cos θ − b sin θ, a sin θ + b cos θ).",
        "The two sines of a rotation have opposite signs. With two minus signs the vector is stretched or squeezed, depending on "
        "where it points: at θ = 1 the pair (1, 1) becomes (−0.301, −0.301), of length 0.426 where it was 1.414.",
        "new_a, new_b = a * cos - b * sin, b * cos - a * sin", "new_a, new_b = a * cos - b * sin, a * sin + b * cos"),
    MistakeText("PO17", "The second number of a pair was computed from the first one's new value; it needs the old one.",
        "`y[..., 0::2] = …` overwrites a, and slices such as `a = y[..., 0::2]` are views that change with it. The next line then "
        "reads the rotated a. Compute both new numbers before either is stored, or read from x and write into y.",
        "a = a * cos - b * sin\nb = a * sin + b * cos", "a, b = a * cos - b * sin, a * sin + b * cos"),
    MistakeText("PO18", "The exponent was divided by d/2 − 1; with i counting pairs from 0 it is i / (d/2).",
        "Divided by d/2 − 1, the exponents reach 1 and the slowest pair turns by exactly 1/base a step. Some libraries do it so, and "
        "such a model trains as well. The paper's exponent 2i/d stops one step short of 1, and with a single pair nothing divides by 0.",
        "frequencies = base ** (-torch.arange(d // 2) / (d // 2 - 1))", "frequencies = base ** (-torch.arange(d // 2) / (d // 2))"),
    MistakeText("PO20", "The sign is wrong: the bias rewards distance.",
        "The bias is added to the scores, and softmax gives the larger score the larger weight. To prefer what is near, the bias "
        "must fall with the distance.",
        "slopes[:, None, None] * distance", "-slopes[:, None, None] * distance"),
    MistakeText("PO21", "The slopes begin one step too early: the first head's is 2^(−8/num_heads), not 1.",
        "With h from 0 the exponent is −8(h + 1)/num_heads, so that the last head's slope is 2⁻⁸ whatever their number. Without the "
        "+ 1 the first slope is 1.",
        "slopes = 2.0 ** (-8 * h / num_heads)", "slopes = 2.0 ** (-8 * (h + 1) / num_heads)"),
    MistakeText("PO22", "The absolute value is missing: later tokens are rewarded.",
        "i − j is negative for keys after the query, and minus times minus is a reward for the future. In a causal model a "
        "mask hides that; here the bias depends on the distance alone.",
        "distance = i[:, None] - j", "distance = (i[:, None] - j).abs()"),
    MistakeText("PO23", "Keys after the query get no bias: the triangle above the diagonal is 0.",
        "In a causal model the mask hides those keys anyway. Here the bias is asked for on both sides, −slope · abs(i − j), and a mask "
        "is another matter.",
        "distance = (i[:, None] - j).clamp(min=0)", "distance = (i[:, None] - j).abs()"),
    MistakeText("PO24", "The slopes are in reverse order: head 0 has the steepest.",
        "2^(−8(h + 1)/num_heads) falls with h. Head 0 looks at what is near, the last head far back.",
        "slopes = slopes.flip(0)", "slopes = 2.0 ** (-8 * (torch.arange(num_heads) + 1) / num_heads)"),
    MistakeText("PO25", "The distance is squared; the bias is linear in it.",
        "The name says it: attention with *linear* biases. Two steps away costs twice one step.",
        "-slopes[:, None, None] * distance ** 2", "-slopes[:, None, None] * distance"),
    MistakeText("PO26", "The slopes ignore the number of heads: 2^(−(h + 1)) is right for eight heads only.",
        "The example in the paper has 8 heads and slopes ½, ¼, …, 1/256. For another number of heads the same range, down to 1/256, "
        "is divided into num_heads steps.",
        "slopes = 2.0 ** -(h + 1)", "slopes = 2.0 ** (-8 * (h + 1) / num_heads)"),
    MistakeText("PO27", "Another rule for numbers of heads that are no power of two; here one formula serves all.",
        "The paper's published code takes the slopes of the next lower power of two and fills up with every second slope of the next "
        "higher one. That is a sound choice, and other numbers than this exercise asks for.",
        "slopes = power_of_two(n) + power_of_two(2 * n)[0::2][: num_heads - n]",
        "slopes = 2.0 ** (-8 * (h + 1) / num_heads)"),
    MistakeText("PO28", "Keys after the query are set to −∞: that is a causal mask, and only a bias was asked for.",
        "Bias and mask do different work. Kept apart, the same bias serves models that see both sides.",
        "bias.masked_fill(j > i[:, None], -torch.inf)", "bias"),
    MistakeText("PO29", "The factor 8 is missing in the exponent: slope_h is 2^(−8(h + 1)/num_heads).",
        "With the 8 the slopes of all heads run down to 2⁻⁸ = 1/256, which looks far back. Without it the last one is ½, so that every "
        "head looks at its neighbours alone.",
        "slopes = 2.0 ** (-(h + 1) / num_heads)", "slopes = 2.0 ** (-8 * (h + 1) / num_heads)"),
    MistakeText("PO30", "The exponent −8(h + 1)/num_heads was rounded to a whole number: `//` stands where `/` belongs.",
        "For 1, 2, 4 and 8 heads the quotient is whole and nothing shows. For 3 heads the exponents are −2⅔, −5⅓ and −8, and rounding "
        "makes −3, −6 and −8 of them.",
        "slopes = 2.0 ** (-8 * (h + 1) // num_heads)", "slopes = 2.0 ** (-8 * (h + 1) / num_heads)"),
    MistakeText("PO31", "Every head has the same slope; head h has 2^(−8(h + 1)/num_heads).",
        "Different slopes are what the heads are for: a steep one reads the neighbours, a flat one the whole text. With one slope all "
        "heads look equally far.",
        "slopes = torch.full((num_heads,), 2.0 ** (-8 / num_heads))", "slopes = 2.0 ** (-8 * (h + 1) / num_heads)"),
    MistakeText("PO32", "x itself was overwritten: the result belongs in a new tensor.",
        "Whoever calls the function still needs x as it was. Autograd does, too: written under `torch.no_grad()` or through `.data`, the "
        "rotation leaves no trace in the graph, and the gradient of x is that of x alone, not turned back.",
        "with torch.no_grad():\n    x[..., 0::2], x[..., 1::2] = new_a, new_b",
        "result = torch.stack((new_a, new_b), dim=-1).flatten(-2)"),
    MistakeText("PO33", "Only head 0 has a bias, the others have zeros: does a `return` stand inside the loop?",
        "A `return` ends the function at once. Inside a loop that is the end of its first turn, and the rows for the heads that were "
        "still to come stay as they were made.",
        "for h in range(num_heads):\n    bias[h] = -slopes[h] * distance\n    return bias",
        "for h in range(num_heads):\n    bias[h] = -slopes[h] * distance\nreturn bias"),
    MistakeText("PO34", "Keys before the query get no bias: the triangle below the diagonal is 0.",
        "`triu` keeps what lies on and above the diagonal, the keys after the query. A causal model looks at none of those, so that "
        "nothing would be left of the bias. Here it is asked for on both sides.",
        "distance = (i[:, None] - j).abs().triu()", "distance = (i[:, None] - j).abs()"),
    MistakeText("PO35", "Operator precedence: 2 ** −8 is taken before the rest is multiplied; put the whole exponent in brackets.",
        "`**` binds closer than `*` and `/`. Without brackets the slopes are (h + 1)/num_heads times 2⁻⁸: they grow from head to head by "
        "equal steps, where each was to be a fixed fraction of the one before.",
        "slopes = 2.0 ** -8 * (h + 1) / num_heads", "slopes = 2.0 ** (-8 * (h + 1) / num_heads)"),
    MistakeText("PO36", "The exponent was rounded down to a whole number: `//` stands where `/` belongs.",
        "The exponents −2i/d lie between −1 and 0. Rounded down, all but the first are −1: one pair turns by a full step and every "
        "other by 1/base, hardly at all. Without the minus all of them are 0.",
        "frequencies = base ** (-torch.arange(0, d, 2) // d)", "frequencies = base ** (-torch.arange(0, d, 2) / d)"),
)  # fmt: skip
