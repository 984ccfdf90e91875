"""Names the mistake behind a wrong answer: the one whose own output is the learner's output.

A name is given only when the mistake reproduces what was observed on at least three cases where the
reference does not. One mistake that fits every case goes first; then one that any exercise may hold (symptoms.py);
then one that fits wherever there are results, since the words of an exception depend on how a thing is written; then
two at once that fit every case; then one that fits every ordinary case, while large scores and the like may show a
further slip. Where the learner's parameters are called otherwise than the exercise's, the cases that show it are left
aside, and the same is tried again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, takewhile

from grader.course.patches import Patch
from grader.course.readings import IN_PART
from grader.course.spec import Case
from grader.judging.compare import PROOF, Compared, as_array, raises_as_asked
from grader.judging.mistake_runs import Ids, Key, MistakeRuns, breaks_contract, same_failure
from grader.judging.symptoms import outcome
from grader.worker.observe import same_random_state
from grader.worker.values import Observation, Part

FEW = 2  # cheap cases, which leave few mistakes
MOST = 0.6  # of the failing cases; such a mistake was what a stranger's wrong answer did in 13 of 14
PAIR_RUNS, TORCH_PAIR_RUNS = 100, 36  # of pairs on cases; with torch a run takes many times as long
SMALL = 1000  # numbers that go in: so many take as long as all else
UNASKED = Part("unasked")  # the reference's side of what it does not return, equal to nothing
Observed = Mapping[int, Compared]  # by the case's position; cases may be missing


class Diagnosis:
    """Tells which of an exercise's mistakes show what a learner's object showed. runs: what each of these shows."""

    def __init__(self, runs: MistakeRuns) -> None:
        self.runs, self.exercise, self.cases = runs, runs.exercise, runs.cases
        # Cases of claims alone that each prove a mistake by themselves, and no other.
        self._self_proving = {
            i
            for i, one in enumerate(self.runs.expected)
            if one.parts and all(part.role == "flag" and part.text for part in one.parts.values())
        }
        self._run_count = 0
        self._proofs_needed = 1 if self.exercise.kind == "answer" else PROOF
        torch = self.exercise.kind == "class" or any(
            part.kind == "tensor"
            for one in (*self.runs.inputs, *(each.parts for each in self.runs.expected))
            for part in one.values()
        )
        own = self.exercise.pair_runs
        self._pair_runs = own if own is not None else TORCH_PAIR_RUNS if torch else PAIR_RUNS
        self._most_telling = 2 if self._pair_runs >= TORCH_PAIR_RUNS else 1
        # How long a case takes, as far as what goes in tells it; a clock would tell something else on each machine.
        self._sizes = [
            SMALL
            + sum(part.array.size for part in one.values() if part.array is not None)
            + sum(array.size for array in case.options.get("state", {}).values())
            for case, one in zip(self.cases, self.runs.inputs, strict=True)
        ]

    def mistakes(self, observed: Observed) -> list[Ids]:
        """The mistakes that fit, each as a tuple of one id or two."""
        with same_random_state(one_thread=True):
            ids = self._mistakes(observed)
            called = {
                i: one for i, one in observed.items() if not (one.actual.failure and one.actual.failure.kind == "call")
            }
            return ids or (self._mistakes(called) if len(called) < len(observed) else [])

    def nearest(self, observed: Observed) -> tuple[Ids, int, int] | None:
        """The one mistake that shows most of what is wrong, where nothing that is right speaks against it: its ids, in how many of the
        failing cases it shows the same, and how many fail. None where these are fewer than MOST."""
        observed = self._to_explain(observed)
        failing = [i for i, one in observed.items() if one.wrong]
        if len(failing) < PROOF:
            return None
        order, needed = self._in_order(observed), max(PROOF, MOST * len(failing))
        first = self._telling([i for i in order if observed[i].wrong and not self.cases[i].costly])

        def count(key: Key) -> int:
            """In how many of the failing cases a mistake shows the same; 0 where these are too few, or where it breaks what is right."""
            same = len(failing)
            for i in order:
                if observed[i].wrong:
                    same -= not self.runs.proves(key, i, observed[i].actual)
                if same < needed or (self.runs.show(key, i).wrong and not observed[i].wrong):
                    return 0
            return same

        shown: dict[Ids, int] = {}
        with same_random_state(one_thread=True):
            for key in ((number,) for number in range(len(self.exercise.mistakes))):
                if any(self.runs.proves(key, i, observed[i].actual) for i in first) and (same := count(key)):
                    shown[self.runs.ids(key)] = max(shown.get(self.runs.ids(key), 0), same)
        most = max(shown.values(), default=0)
        likest = [ids for ids, count in shown.items() if count == most]
        return (likest[0], most, len(failing)) if len(likest) == 1 else None

    def _to_explain(self, observed: Observed) -> Observed:
        """The cases that tell of a mistake; of those the ones that fail are its proof, since what is right is no mistake's own."""
        return {
            i: one for i, one in observed.items() if i not in self._self_proving and IN_PART not in one.actual.parts
        }

    def _mistakes(self, every: Observed) -> list[Ids]:
        observed = self._to_explain(every)
        everywhere = self._in_order(observed)
        singles = self._singles(observed, everywhere)
        if singles or self.exercise.kind == "answer":
            return singles
        if id := outcome(self.exercise, every.values()):
            return [(id,)]
        ordinary = [i for i in everywhere if self.cases[i].stage == "values" and self.cases[i].raises is None]
        return (
            self._singles(observed, everywhere, ignore_exception_text=True)
            or self._pairs(observed, everywhere)
            or self._singles(observed, ordinary)
            or self._singles(observed, ordinary, ignore_exception_text=True)
        )

    def _in_order(self, observed: Observed) -> list[int]:
        """The cases, first those at which most mistakes end soonest: what is cheap, of that what fails, and of that the smallest.
        Where nothing cheap fails, what fails comes after a few: these leave so few mistakes that the others would take longer."""
        smallest = sorted(observed, key=lambda i: observed[i].wrong and -1 / self._sizes[i])
        cheap, costly = ([i for i in smallest if self.cases[i].costly == wanted] for wanted in (False, True))
        wrong, right = ([i for i in costly if observed[i].wrong == wanted] for wanted in (True, False))
        few = FEW if wrong and not any(observed[i].wrong for i in cheap) else len(cheap)
        return [*cheap[:few], *wrong, *cheap[few:], *right]

    def _is_enough(self, observed: Observed, at: Sequence[int]) -> bool:
        """Whether of these cases so many fail that a mistake may be proven."""
        return sum(observed[i].wrong for i in at) >= self._proofs_needed

    def _singles(self, observed: Observed, at: Sequence[int], ignore_exception_text: bool = False) -> list[Ids]:
        if not self._is_enough(observed, at):
            return []
        every = ((number,) for number in range(len(self.exercise.mistakes)))
        return list(dict.fromkeys(map(self.runs.ids, self._fitting(every, observed, at, ignore_exception_text))))

    def _fitting(
        self, keys: Iterable[Key], observed: Observed, at: Sequence[int], ignore_exception_text: bool = False
    ) -> Iterator[Key]:
        """Those that fit. Each is tried on the cheap cases first at which most of those before it ended: it will end there, too."""
        cheap = [*takewhile(lambda i: not self.cases[i].costly, at)]
        tried, ended = Counter(cheap), Counter(i for i in cheap if observed[i].wrong)  # how many; a guess to begin with
        for key in keys:
            likeliest = sorted(cheap, key=lambda i: -ended[i] / tried[i] / self._sizes[i])
            # What is kept takes no time. Of pairs it is left aside: their runs are counted, whatever was judged before.
            kept = {i for i in at if len(key) == 1 and (key, i) in self.runs.shown}
            order = sorted([*likeliest, *at[len(cheap) :]], key=kept.__contains__, reverse=True)
            end = self._end(key, observed, order, ignore_exception_text)
            if end is None:
                yield key
            else:
                ended[end] += 1
                tried.update(order[: order.index(end) + 1])

    def _pairs(self, observed: Observed, at: Sequence[int]) -> list[Ids]:
        """Two at most. Where all failing cases are costly, none: to try pairs on these would take too long."""
        cheap = [i for i in at if observed[i].wrong and not self.cases[i].costly]
        if not cheap or not self._pair_runs or not self._is_enough(observed, at):
            return []
        fitting: list[Ids] = []
        enough = self._run_count + self._pair_runs

        def may_be(key: Key) -> bool:
            return len(set(ids := self.runs.ids(key))) == 2 and ids not in fitting and self.runs.object(key) is not None

        candidates = self._candidate_pairs({i: observed[i].actual for i in self._telling(cheap)})
        likely = filter(may_be, takewhile(lambda _: self._run_count < enough, candidates))
        for key in self._fitting(likely, observed, at):
            fitting.append(self.runs.ids(key))
            if len(fitting) == 2:
                break
        return fitting

    def _telling(self, at: Sequence[int]) -> list[int]:
        """Of these cases two at most: the first, on which singles have run, and in the exercise's order the last, which is of another kind;
        only the first where a run takes long."""
        return [*at[:1], *sorted(at[1:])[-1:]][: self._most_telling]

    def _end(self, key: Key, observed: Observed, at: list[int], ignore_exception_text: bool = False) -> int | None:
        """The first of these cases on which a mistake does not show what was observed, or the last where it is wrong on too few;
        None where it fits.

        ignore_exception_text: whether two exceptions in different words count as the same, where another case proves the mistake, too.
        """
        proofs, differently_worded = 0, 0
        for i in at:
            self._run_count += 1  # also where what it showed is kept from before
            mistake, actual = self.runs.show(key, i), observed[i].actual
            if self.runs.same(i, mistake.actual, actual):
                proofs += mistake.wrong
            elif ignore_exception_text and _both_fail(self.cases[i], mistake.actual, actual):
                differently_worded += 1
            else:
                return i
        if proofs >= self._proofs_needed or (proofs > 0 and proofs + differently_worded >= self._proofs_needed):
            return None
        return at[-1]

    # --- pairs: their members are chosen by what each shows alone ------------------------------------------------

    def _candidate_pairs(self, failing: Mapping[int, Observation]) -> list[Key]:
        """Pairs that may be behind it, the likeliest first: those of which one member alone shows most of what is wrong.

        failing: what was observed in the cases by which members are chosen.
        """
        patches = [
            n for n, one in enumerate(self.exercise.mistakes) if isinstance(one.wrong, Patch) and "+" not in one.id
        ]
        members, pools = patches, []
        for i, actual in failing.items():
            members = [n for n in members if self._may_take_part(n, i, actual)]
            pools += self._pools(members, i, actual)
            if not all(pools):
                return []
        shows = {
            n: {(i, what) for i, actual in failing.items() for what in self._explained(n, i, actual)} for n in members
        }
        changes = {n for n in members if any(self.runs.show((n,), i).wrong for i in failing)}
        pairs = [
            pair for pair in combinations(members, 2) if all(not pool.isdisjoint(pair) for pool in (changes, *pools))
        ]
        return sorted(pairs, key=lambda pair: -len(shows[pair[0]] | shows[pair[1]]))

    def _pools(self, members: list[int], i: int, actual: Observation) -> list[set[int]]:
        """Of each of these sets of mistakes, one has to be in a pair. Two together do not break a contract that neither breaks alone, nor
        fail a claim that holds for either, nor return something else than numbers where both return numbers."""
        if breaks_contract(actual):
            return [{n for n in members if breaks_contract(self.runs.show((n,), i).actual)}]
        pairs = {name: (right, actual.parts.get(name)) for name, right in self.runs.expected[i].parts.items()}
        plain = [
            name
            for name, (right, theirs) in pairs.items()
            if theirs is not None
            and (right.role == "flag" or (theirs.kind == "none" and right.array is not None))
            and not self.runs.same_part(i, right, theirs)
        ]
        explained = {n: self._explained(n, i, actual) for n in members} if plain else {}
        return [{n for n in members if name in explained[n]} for name in plain]

    def _explained(self, number: int, i: int, actual: Observation) -> set[str]:
        """The names of the wrong parts that a mistake alone shows in the same way; '' for a failure."""
        alone = self.runs.show((number,), i).actual
        if alone.failure or actual.failure:
            return {""} if same_failure(alone, actual) else set()
        return {
            name
            for name, (right, mine, theirs) in self._parts(i, alone, actual).items()
            if self.runs.same_part(i, mine, theirs) and not self.runs.same_part(i, right, theirs)
        }

    def _may_take_part(self, number: int, i: int, actual: Observation) -> bool:
        """Whether a mistake can be one of two behind what was observed: alone, it breaks no correct part."""
        alone = self.runs.show((number,), i).actual
        if not self.runs.show((number,), i).wrong:
            return True
        if alone.failure or actual.failure:
            return bool(actual.failure)  # in other words too: a second mistake may change the shapes that they tell
        for right, mine, theirs in self._parts(i, alone, actual).values():
            if self.runs.same_part(i, right, theirs) and not self.runs.same_part(i, right, mine):
                return False
            if as_array(mine).shape not in (as_array(right).shape, as_array(theirs).shape):
                return False
        return True

    def _parts(self, i: int, alone: Observation, actual: Observation) -> dict[str, tuple[Part, Part, Part]]:
        """The parts that a mistake and the learner have of a case, by name, and those of the reference."""
        right, mine, theirs = (one.parts for one in (self.runs.expected[i], alone, actual))
        return {name: (right.get(name, UNASKED), mine[name], theirs[name]) for name in mine if name in theirs}


def _both_fail(case: Case, mistake: Observation, actual: Observation) -> bool:
    """Both end in an exception, in whatever words: how it is raised depends on how a thing is written. Where a case must
    raise and neither does so as asked, it does not matter what they do in its place."""
    both = (mistake, actual)
    if case.raises is None:
        return all(one.failure is not None and one.failure.kind == "exception" for one in both)
    return not any(raises_as_asked(case, one) for one in both)
