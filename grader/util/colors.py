"""The colors of matrices in figures and verdicts, told apart with every common color vision (Okabe and Ito 2008)."""

from __future__ import annotations

from collections.abc import Sequence

RAMPS = {
    "weights": ("#FFFFFF", "#C6DDEE", "#6FAED6", "#0072B2", "#00395A"),
    "values": ("#FFFFFF", "#D5EEE6", "#7FCBB4", "#009E73", "#00503A"),
    "diverging": ("#0072B2", "#8FBFDD", "#FFFFFF", "#EDB58C", "#D55E00"),
}


def luminance(color: Sequence[float]) -> float:
    """Relative luminance (WCAG 2.2). color: red, green and blue, each 0 to 1."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
