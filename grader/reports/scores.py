"""The distribution of scores of a class as inline SVG, with the same counts in words."""

from __future__ import annotations

from grader.reports.html import escape
from grader.reports.room import ClassSummary

BINS = 10
WIDTH, HEIGHT, LEFT, TOP, BASE = 700, 210, 8, 24, 172  # of the picture, and of where its bars stand


def counts(room: ClassSummary) -> list[int]:
    """Learners who have a score by tenths of what they could reach; 100 % is in the last."""
    found = [0] * BINS
    for part in room.shares:
        found[min(int(part * BINS + 1e-9), BINS - 1)] += 1
    return found


def svg(room: ClassSummary) -> str:
    """A bar for each tenth, its count above it, the median marked."""
    found = counts(room)
    step = (WIDTH - 2 * LEFT) / BINS
    drawn = [f'<line x1="{LEFT}" y1="{BASE}" x2="{WIDTH - LEFT}" y2="{BASE}"/>']
    said = [f'<text x="{WIDTH / 2:g}" y="{BASE + 35}">share of the points, %</text>']
    for at, count in enumerate(found):
        x, high = LEFT + at * step, (BASE - TOP) * count / max(*found, 1)
        said.append(f'<text x="{x + step / 2:g}" y="{BASE + 17}">{label(at)}</text>')
        if count:
            drawn.append(f'<rect x="{x + 3:g}" y="{BASE - high:.1f}" width="{step - 6:g}" height="{high:.1f}" rx="2"/>')
            said.append(f'<text class="count" x="{x + step / 2:g}" y="{BASE - high - 6:.1f}">{count}</text>')
    if room.median is not None:
        x = LEFT + room.median * (WIDTH - 2 * LEFT)
        drawn.append(f'<line class="mark" x1="{x:.1f}" y1="6" x2="{x:.1f}" y2="{BASE}"/>')
    drawn += said  # above the bars and the median's line
    return (
        f'<figure style="margin: 0"><svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'aria-label="{escape(spoken(found))}">{"".join(drawn)}</svg>'
        f'<figcaption class="fine">Learners by their share of the points; dashed: the median.{_left_out(room)}</figcaption></figure>'
    )


def _left_out(room: ClassSummary) -> str:
    return f" Without a score, and not counted here: {len(room.ungraded)}." if room.ungraded else ""


def label(at: int) -> str:
    """'0–9', '10–19', …, '90–100'."""
    return f"{at * 100 // BINS}–{(at + 1) * 100 // BINS - (at < BINS - 1)}"


def spoken(found: list[int]) -> str:
    """The counts in words."""
    said = [f"{label(at)} %: {count}" for at, count in enumerate(found) if count]
    return f"Learners by share of the points. {'; '.join(said) or 'Nobody'}."
