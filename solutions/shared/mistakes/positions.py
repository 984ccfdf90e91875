"""Positions: frequencies and layout of the sinusoidal encoding, and the pairs of RoPE."""

from grader.course.spec import MistakeText

TEXTS = (
    MistakeText(
        "PE1",
        "The exponent was doubled; it should be 2i divided by the width, and a count in steps of 2 already gives 2i.",
        "The paper writes 2i / d_model with i counting pairs: 0, 1, 2, … A loop over `range(0, d_model, 2)` counts columns, so its "
        "variable is that 2i already. Doubled, the frequencies fall twice as fast and most columns hardly change over a sentence. "
        "Column pair 0 is right either way.\n\n"
        "Take d_model = 4, position 1, column 2. The right angle is 1 / 10000^(2/4) = 0.01 and its sine 0.0099998. Doubled, the angle "
        "is 1 / 10000^(4/4) = 0.0001.",
        "i = torch.arange(0, d_model, 2)\nangles = position / base ** (2 * i / d_model)",
        "i = torch.arange(0, d_model, 2)\nangles = position / base ** (i / d_model)",
        "jadore801120/attention-is-all-you-need-pytorch#32",
    ),
    MistakeText(
        "PE2",
        "Sine and cosine of a pair were given different frequencies; column 2i + 1 should use the exponent of column 2i.",
        "A pair (sin, cos) of one angle is a point on a circle, and a shift by k positions turns it by the same angle everywhere: the "
        "dot product of PE(p) and PE(p + k) does not depend on p. With another frequency in the cosine that is lost.\n\n"
        "Take d_model = 2 and k = 1. With one frequency the dot product is cos(1) = 0.5403 for every p. With the cosine's exponent at 1/2 "
        "it is 0.99995 for p = 0 and 1.7649 for p = 1.",
        "column = torch.arange(d_model)\nangles = position / base ** (column / d_model)",
        "column = torch.arange(d_model)\nangles = position / base ** ((column - column % 2) / d_model)",
        "SamLynnEvans/Transformer#25",
    ),
    MistakeText(
        "PE3",
        "`//` rounded the whole quotient down; put the divisor in brackets: `(d_model // 2)`.",
        "Division and `//` have the same rank and are read from the left: `a / d // 2` is `(a / d) // 2`. Here that rounds a small "
        "negative number down to a whole one. For wide models it is −1 whatever the width, and the frequencies collapse within a few "
        "columns.\n\n"
        "Take d_model = 4: −ln(10000) is −9.2103. We want −9.2103 / 2 = −4.6052, whose exponential is the frequency 0.01. Read from the "
        "left, −2.3026 // 2 is −2, and the frequency is 0.1353.",
        "frequency = math.exp(-math.log(10000.0) / d_model // 2)",
        "frequency = math.exp(-math.log(10000.0) / (d_model // 2))",
        "zju3dv/LoFTR#41",
    ),
    MistakeText(
        "PE4",
        "All sines came first, then all cosines; they should alternate, column by column.",
        "All sines first and all cosines after them is a valid encoding, used by several libraries, and a model trains on it equally "
        "well. Its columns are those of the paper in another order, so weights and numbers cannot be exchanged between the two.\n\n"
        "Take d_model = 4 and position 1, with angles 1 and 0.01. Alternating, the row is [0.841, 0.540, 0.010, 1.000]. Sines first, it "
        "is [0.841, 0.010, 0.540, 1.000].",
        "encoding = torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)",
        "encoding = torch.stack([torch.sin(angles), torch.cos(angles)], dim=-1).flatten(-2)",
        "tensorflow/tensor2tensor#391",
    ),
    MistakeText(
        "RO1",
        "The first half of the numbers was paired with the second, which is a valid rotation; here neighbors should form a pair.",
        "Two layouts of RoPE are in use, and of tables of sines and cosines. One turns (x[0], x[1]), (x[2], x[3]), …; the other turns x[i] "
        "with x[i + d/2]. Both keep norms "
        "and depend on relative positions alone, so a model trained with either is fine. Mixed with weights of the other, attention is "
        "wrong without an error.\n\n"
        "Take x = [1, 0, 0, 0] at position 1, with angles 1 and 0.01. Neighbors give [0.540, 0.841, 0, 0]. Halves give [0.540, 0, "
        "0.841, 0].",
        "first, second = x.chunk(2, dim=-1)",
        "first, second = x[..., 0::2], x[..., 1::2]",
        "NeuraLegion/shainet#111",
    ),
    MistakeText(
        "RO2",
        "The angles were laid out for another pairing than that of x; both numbers of a pair should turn by the same angle.",
        "Angles repeated as [θ0, θ0, θ1, θ1] belong to neighbors, angles tiled as [θ0, θ1, θ0, θ1] to halves. Crossed over, the two "
        "numbers of a pair turn by different angles. That is no rotation, and lengths change.\n\n"
        "Take x = [1, 0, 0, 0] at position 1, angles 1 and 0.01 repeated for neighbors, pairs by halves. The result is [cos 1, 0, sin "
        "0.01, 0] = [0.540, 0, 0.010, 0], of length 0.540 where it was 1.",
        "tiled = torch.cat([angles, angles], dim=-1)\n"
        "turned = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)\n"
        "result = x * tiled.cos() + turned * tiled.sin()",
        "repeated = angles.repeat_interleave(2, dim=-1)\n"
        "turned = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)\n"
        "result = x * repeated.cos() + turned * repeated.sin()",
    ),
    MistakeText(
        "RO3",
        "The signs are not those of a rotation, which has one minus: each pair should become (a cos θ − b sin θ, a sin θ + b cos θ).",
        "A rotation keeps lengths because its two sines have opposite signs. With two plus signs, or two minus signs, the vector is "
        "stretched or squeezed, depending on where it points. Where b is 0 two plus signs do not show, so the test vector [1, 0] passes. "
        "A minus sign at a cosine as well mirrors the pair: lengths stay, and dot products no longer depend on distances alone.\n\n"
        "Take [1, 1] and the angle 1. The rotation gives [−0.301, 1.382], of length 1.414 as before. With two plus signs we get [1.382, "
        "1.382], of length 1.954.",
        "new_a, new_b = a * cos + b * sin, a * sin + b * cos\nturned = torch.stack([new_a, new_b], dim=-1)",
        "new_a, new_b = a * cos - b * sin, a * sin + b * cos\nturned = torch.stack([new_a, new_b], dim=-1)",
    ),
    MistakeText(
        "PO2",
        "Every position was made one too large; positions should count from 0.",
        "Counting from 1 shifts a table by a row and every rotation by a step. Distances stay right, so attention hardly changes, "
        "until weights or positions are used by code that counts from 0. Of a learned table the first row is then never used, and the "
        "last position of a text of max_len tokens is one past the end.\n\n"
        "Take a table of three rows. Three tokens should read the rows 0, 1 and 2. Counted from 1, they ask for 1, 2 and 3.",
        "rows = torch.arange(1, t_k + 1)",
        "rows = torch.arange(t_k)",
    ),
)
