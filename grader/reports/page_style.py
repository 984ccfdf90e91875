"""The frame of an HTML page: head and style. Light and dark by the reader's setting, printable, nothing fetched."""

from __future__ import annotations

from grader.reports import html

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
STYLE = """
:root {color-scheme: light dark; --ink: #1c1e21; --soft: #5c6370; --paper: #ffffff; --line: #d9dce1; --band: #f5f6f8;
  --accent: #0072B2; --bar: #6FAED6; --good: #007a5a; --goodwash: #e6f4ef; --bad: #b84a00; --badwash: #fdeee4;
  --odd: #8c3f80; --oddwash: #f6eaf4; --none: #6b7280}
@media (prefers-color-scheme: dark) {:root {--ink: #e4e6ea; --soft: #a2a8b3; --paper: #16181c; --line: #363a42;
  --band: #1f2228; --accent: #7fc1ea; --bar: #3f83ad; --good: #5fd0ae; --goodwash: #16302a; --bad: #f19a63;
  --badwash: #3a2418; --odd: #dc9bd0; --oddwash: #35233a; --none: #9aa1ac}}
* {box-sizing: border-box}
html {scroll-padding-top: 1em}
body {font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--ink); background: var(--paper);
  margin: 0; overflow-wrap: anywhere}
main, header.top, footer {max-width: 72rem; margin: 0 auto; padding: 0 1.5rem}
header.top {padding-top: 2.5rem}
footer {padding-top: 1rem; padding-bottom: 3rem; color: var(--soft); font-size: .88rem}
h1, h2, h3, h4 {font-weight: 650; line-height: 1.25; margin: 0}
h1 {font-size: 1.75rem} h2 {font-size: 1.3rem; margin: 3rem 0 .6rem} h3 {font-size: 1.08rem; margin: 1.6rem 0 .4rem}
h4 {font-size: 1rem; margin: 1.2rem 0 .3rem}
p {margin: 0 0 .6rem; max-width: 46rem}
a {color: var(--accent); text-underline-offset: .15em}
a:focus-visible, summary:focus-visible, .scroll:focus-visible {outline: 2px solid var(--accent); outline-offset: 2px}
code {font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .92em}
.lead, .points, .fine {color: var(--soft)} .points {font-weight: 400; font-size: .85em; white-space: nowrap}
.fine {font-size: .88rem}
nav ul {list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; padding: 0; margin: 1rem 0 0}
dl.figures {display: flex; flex-wrap: wrap; gap: 1rem 3rem; margin: 1.6rem 0 0}
dl.figures div {min-width: 6rem} dl.figures dt {color: var(--soft); font-size: .88rem}
dl.figures dd {margin: 0; font-size: 1.9rem; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums}
.chart {display: block; width: 100%; max-width: 44rem; height: auto; margin: .4rem 0}
.chart text {font: 12px system-ui, sans-serif; fill: var(--soft); text-anchor: middle}
.chart .count {fill: var(--ink); font-weight: 600; paint-order: stroke; stroke: var(--paper); stroke-width: 5px}
.chart rect {fill: var(--bar)}
.chart line {stroke: var(--line)} .chart line.mark {stroke: var(--ink); stroke-dasharray: 3 3}
.scroll {position: relative; overflow: auto; border: 1px solid var(--line); border-radius: 6px; max-height: 85vh}
table.grid {border-collapse: separate; border-spacing: 0; font-size: .88rem; overflow-wrap: normal}
caption {text-align: left; color: var(--soft); font-size: .88rem; padding: .2rem 0 .6rem}
.grid th, .grid td {border-bottom: 1px solid var(--line); padding: .18rem .4rem; background: var(--paper)}
.grid thead th {position: sticky; top: 0; z-index: 2; font-weight: 500; background: var(--band); vertical-align: bottom}
.grid thead tr + tr th {top: 1.95rem}
.grid thead .lesson {text-align: left; white-space: nowrap; height: 1.95rem; border-left: 1px solid var(--line);
  max-width: 1px; overflow: hidden; text-overflow: ellipsis}
.grid.few thead .lesson {max-width: none}
.grid .first {border-left: 1px solid var(--line)}
.grid .name {writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; font-weight: 400;
  max-height: 15rem; margin: 0 auto; text-align: left}
.grid th[scope=row], .grid thead th.corner {position: sticky; left: 0; z-index: 1; text-align: left; font-weight: 500;
  min-width: 7rem; max-width: 15rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  border-right: 1px solid var(--line)}
.grid thead th.corner {z-index: 3}
.grid td {text-align: center; min-width: 1.9rem} .grid td.total {text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums}
.grid tr:hover td, .grid tr:hover th[scope=row] {background: var(--band)}
.grid td.passed {color: var(--good); background: var(--goodwash)}
.grid td.failed {color: var(--bad); background: var(--badwash); font-weight: 700}
.grid td.error, .grid td.timeout, .grid td.memory {color: var(--odd); background: var(--oddwash); font-weight: 700}
.grid td.forbidden, .grid td.could_not_grade {font-weight: 700; background: var(--band)}
.grid td.not_started, .grid td.missing, .grid td.absent {color: var(--none)}
.sign {font-weight: 700} .sign.passed {color: var(--good)} .sign.not_started {color: var(--none)}
.key {display: flex; flex-wrap: wrap; gap: .1rem 1.3rem; list-style: none; padding: 0; margin: 0 0 .6rem;
  font-size: .88rem; color: var(--soft)}
.key b {display: inline-block; min-width: 1.1em; text-align: center; color: var(--ink)}
table.list {border-collapse: collapse; width: 100%; font-size: .94rem}
.list th, .list td {text-align: left; vertical-align: top; padding: .35rem 1rem .35rem 0;
  border-bottom: 1px solid var(--line)}
.list thead th {font-weight: 500; color: var(--soft); font-size: .88rem; white-space: nowrap}
.list tbody th {font-weight: 500} .list tbody th code, .list tbody th .fine {white-space: nowrap}
.list .number {white-space: nowrap; font-variant-numeric: tabular-nums}
.bar {display: inline-block; width: 8rem; height: .62rem; border: 1px solid var(--bar); border-radius: 2px;
  margin-right: .6rem; overflow: hidden; vertical-align: .05rem}
.bar i {display: block; height: 100%; background: var(--bar)}
ol.mistakes {list-style: none; padding: 0; margin: 0}
ol.mistakes > li {border-top: 1px solid var(--line); padding: .8rem 0 .5rem; display: grid;
  grid-template-columns: 9.5rem minmax(0, 1fr); column-gap: 1.5rem}
ol.mistakes .how {font-variant-numeric: tabular-nums} ol.mistakes .how b {font-size: 1.3rem}
ol.mistakes .sentence {font-size: 1.05rem; font-weight: 500; margin-bottom: .35rem}
details > summary {cursor: pointer; color: var(--soft); font-size: .92rem} details {margin: .2rem 0 .5rem}
.who {font-size: .94rem} .who .label {color: var(--soft)}
.learner {content-visibility: auto; contain-intrinsic-size: auto 40rem}
main > .learner:first-child {padding-top: 2rem}
section.learners > .learner {border-top: 1px solid var(--line); padding: 1.4rem 0 .6rem}
section.learners > .learner > h3 {margin-top: 0; font-size: 1.2rem}
.learner:target > h3 {text-decoration: underline; text-underline-offset: .25em}
.message {border: 1px solid var(--bad); border-radius: 4px; padding: .5rem .8rem} .line {margin-bottom: .3rem}
.attn pre {white-space: pre-wrap}
.unseen {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap}
@media (max-width: 640px) {main, header.top, footer {padding-left: 1rem; padding-right: 1rem}
  ol.mistakes > li {grid-template-columns: 1fr} .bar {width: 4rem} h1 {font-size: 1.45rem}
  .scroll .list td {min-width: 10rem}
  .grid th[scope=row], .grid thead th.corner {max-width: 8.5rem; min-width: 6rem}}
@page wide {size: A4 landscape; margin: 10mm}
@media print {:root {color-scheme: light} body {font-size: 10.5pt} nav {display: none}
  * {print-color-adjust: exact; -webkit-print-color-adjust: exact}
  .scroll {overflow: visible; border: 0; max-height: none} table.grid {font-size: 7pt; line-height: 1.3}
  .grid th, .grid td {padding: 1px 2px; min-width: 0} section.table {page: wide}
  .grid thead th, .grid th[scope=row] {position: static} .learner {content-visibility: visible}
  .attn, figure, li, tr {break-inside: avoid} h2, h3, h4 {break-after: avoid} a {color: inherit; text-decoration: none}}
"""


def document(title: str, body: str) -> str:
    """The whole page. The policy in its head lets a browser neither fetch nor run anything, whatever stands in it."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{html.escape(title)}</title>'
        f"{html.STYLE}<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )
