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
from grader.judging.compare import PROOF, Comparison, as_array, raises_as_asked
from grader.judging.mistake_runs import Ids, Key, MistakeRuns, breaks_contract, same_failure
from grader.judging.symptoms import outcome
from grader.worker.observe import same_random_state
from grader.worker.values import Observation, Part

FIRST_CHEAP = 2  # cheap cases, which leave few mistakes
MIN_SHARE = 0.6  # of the failing cases; such a mistake was what a stranger's wrong answer did in 13 of 14
PAIR_RUNS, TORCH_PAIR_RUNS = 100, 36  # of pairs on cases; with torch a run takes many times as long
BASE_SIZE = 1000  # numbers that go in: so many take as long as all else
NO_REFERENCE = Part("unasked")  # the reference's side of what it does not return, equal to nothing
Comparisons = Mapping[int, Comparison]  # by the case's position; cases may be missing


class Diagnosis:
    """Tells which of an exercise's mistakes show what a learner's object showed. runs: what each of these shows."""

    def __init__(self, runs: MistakeRuns) -> None:
        self.runs, self.exercise, self.cases = runs, runs.exercise, runs.cases
        # Cases of claims alone that each prove a mistake by themselves, and no other.
        self._self_proving = {
            i
            for i, expected in enumerate(self.runs.expected)
            if expected.parts and all(part.role == "flag" and part.text for part in expected.parts.values())
        }
        self._run_count = 0
        self._min_proofs = 1 if self.exercise.kind == "answer" else PROOF
        torch = self.exercise.kind == "class" or any(
            part.kind == "tensor"
            for parts in (*self.runs.inputs, *(expected.parts for expected in self.runs.expected))
            for part in parts.values()
        )
        default = TORCH_PAIR_RUNS if torch else PAIR_RUNS
        self._pair_runs = default if self.exercise.pair_runs is None else self.exercise.pair_runs
        self._sample_size = 2 if self._pair_runs >= TORCH_PAIR_RUNS else 1
        # How long a case takes, as far as what goes in tells it; a clock would tell something else on each machine.
        self._sizes = [
            BASE_SIZE
            + sum(part.array.size for part in inputs.values() if part.array is not None)
            + sum(array.size for array in case.options.get("state", {}).values())
            for case, inputs in zip(self.cases, self.runs.inputs, strict=True)
        ]

    def mistakes(self, comparisons: Comparisons) -> list[Ids]:
        """The mistakes that fit, each as a tuple of one id or two."""
        with same_random_state(one_thread=True):
            ids = self._mistakes(comparisons)
            failures = {i: comparison.actual.failure for i, comparison in comparisons.items()}
            others = {i: comparisons[i] for i, failure in failures.items() if not (failure and failure.kind == "call")}
            return ids or (self._mistakes(others) if len(others) < len(comparisons) else [])

    def nearest(self, comparisons: Comparisons) -> tuple[Ids, int, int] | None:
        """The one mistake that shows most of what is wrong, where nothing that is right speaks against it: its ids, in how many of the
        failing cases it shows the same, and how many fail. None where these are fewer than MIN_SHARE."""
        comparisons = self._explainable(comparisons)
        failing = [i for i, comparison in comparisons.items() if comparison.wrong]
        if len(failing) < PROOF:
            return None
        order, minimum = self._order(comparisons), max(PROOF, MIN_SHARE * len(failing))
        first = self._sample([i for i in order if comparisons[i].wrong and not self.cases[i].costly])

        def count(key: Key) -> int:
            """In how many of the failing cases a mistake shows the same; 0 where these are too few, or where it breaks what is right."""
            same = len(failing)
            for i in order:
                if comparisons[i].wrong:
                    same -= not self.runs.proves(key, i, comparisons[i].actual)
                if same < minimum or (self.runs.show(key, i).wrong and not comparisons[i].wrong):
                    return 0
            return same

        counts: dict[Ids, int] = {}
        with same_random_state(one_thread=True):
            for key in ((number,) for number in range(len(self.exercise.mistakes))):
                if any(self.runs.proves(key, i, comparisons[i].actual) for i in first) and (same := count(key)):
                    counts[self.runs.ids(key)] = max(counts.get(self.runs.ids(key), 0), same)
        most = max(counts.values(), default=0)
        nearest = [ids for ids, same in counts.items() if same == most]
        return (nearest[0], most, len(failing)) if len(nearest) == 1 else None

    def _explainable(self, comparisons: Comparisons) -> Comparisons:
        """The cases that tell of a mistake; of those the ones that fail are its proof, since what is right is no mistake's own."""
        return {
            i: comparison
            for i, comparison in comparisons.items()
            if i not in self._self_proving and IN_PART not in comparison.actual.parts
        }

    def _mistakes(self, all_comparisons: Comparisons) -> list[Ids]:
        comparisons = self._explainable(all_comparisons)
        positions = self._order(comparisons)
        singles = self._singles(comparisons, positions)
        if singles or self.exercise.kind == "answer":
            return singles
        if id := outcome(self.exercise, all_comparisons.values()):
            return [(id,)]
        ordinary = [i for i in positions if self.cases[i].stage == "values" and self.cases[i].raises is None]
        return (
            self._singles(comparisons, positions, any_words=True)
            or self._pairs(comparisons, positions)
            or self._singles(comparisons, ordinary)
            or self._singles(comparisons, ordinary, any_words=True)
        )

    def _order(self, comparisons: Comparisons) -> list[int]:
        """The cases, first those at which most mistakes end soonest: what is cheap, of that what fails, and of that the smallest.
        Where nothing cheap fails, what fails comes after a few: these leave so few mistakes that the others would take longer."""
        smallest = sorted(comparisons, key=lambda i: comparisons[i].wrong and -1 / self._sizes[i])
        cheap, costly = ([i for i in smallest if self.cases[i].costly == is_costly] for is_costly in (False, True))
        wrong, right = ([i for i in costly if comparisons[i].wrong == is_wrong] for is_wrong in (True, False))
        few = FIRST_CHEAP if wrong and not any(comparisons[i].wrong for i in cheap) else len(cheap)
        return [*cheap[:few], *wrong, *cheap[few:], *right]

    def _is_enough(self, comparisons: Comparisons, positions: Sequence[int]) -> bool:
        """Whether of these cases so many fail that a mistake may be proven."""
        return sum(comparisons[i].wrong for i in positions) >= self._min_proofs

    def _singles(self, comparisons: Comparisons, positions: Sequence[int], any_words: bool = False) -> list[Ids]:
        if not self._is_enough(comparisons, positions):
            return []
        keys = ((number,) for number in range(len(self.exercise.mistakes)))
        return list(dict.fromkeys(map(self.runs.ids, self._fitting(keys, comparisons, positions, any_words))))

    def _fitting(
        self, keys: Iterable[Key], comparisons: Comparisons, positions: Sequence[int], any_words: bool = False
    ) -> Iterator[Key]:
        """Those that fit. Each is tried on the cheap cases first at which most of those before it ended: it will end there, too."""
        cheap = [*takewhile(lambda i: not self.cases[i].costly, positions)]
        trials, misfits = Counter(cheap), Counter(i for i in cheap if comparisons[i].wrong)  # a guess to begin with
        for key in keys:
            likeliest = sorted(cheap, key=lambda i: -misfits[i] / trials[i] / self._sizes[i])
            # What is kept takes no time. Of pairs it is left aside: their runs are counted, whatever was judged before.
            cache_hits = {i for i in positions if len(key) == 1 and (key, i) in self.runs.cache}
            order = sorted([*likeliest, *positions[len(cheap) :]], key=cache_hits.__contains__, reverse=True)
            misfit = self._misfit(key, comparisons, order, any_words)
            if misfit is None:
                yield key
            else:
                misfits[misfit] += 1
                trials.update(order[: order.index(misfit) + 1])

    def _pairs(self, comparisons: Comparisons, positions: Sequence[int]) -> list[Ids]:
        """Two at most. Where all failing cases are costly, none: to try pairs on these would take too long."""
        cheap = [i for i in positions if comparisons[i].wrong and not self.cases[i].costly]
        if not cheap or not self._pair_runs or not self._is_enough(comparisons, positions):
            return []
        fitting: list[Ids] = []
        limit = self._run_count + self._pair_runs

        def is_candidate(key: Key) -> bool:
            return len(set(ids := self.runs.ids(key))) == 2 and ids not in fitting and self.runs.object(key) is not None

        candidates = self._candidate_pairs({i: comparisons[i].actual for i in self._sample(cheap)})
        likely = filter(is_candidate, takewhile(lambda _: self._run_count < limit, candidates))
        for key in self._fitting(likely, comparisons, positions):
            fitting.append(self.runs.ids(key))
            if len(fitting) == 2:
                break
        return fitting

    def _sample(self, positions: Sequence[int]) -> list[int]:
        """Of these cases two at most: the first, on which singles have run, and in the exercise's order the last, which is of another kind;
        only the first where a run takes long."""
        return [*positions[:1], *sorted(positions[1:])[-1:]][: self._sample_size]

    def _misfit(self, key: Key, comparisons: Comparisons, positions: list[int], any_words: bool = False) -> int | None:
        """The first of these cases on which a mistake does not show what was observed, or the last where it is wrong on too few;
        None where it fits.

        any_words: whether two exceptions in different words count as the same, where another case proves the mistake, too.
        """
        proofs, differently_worded = 0, 0
        for i in positions:
            self._run_count += 1  # also where what it showed is kept from before
            mistake, actual = self.runs.show(key, i), comparisons[i].actual
            if self.runs.same(i, mistake.actual, actual):
                proofs += mistake.wrong
            elif any_words and _both_fail(self.cases[i], mistake.actual, actual):
                differently_worded += 1
            else:
                return i
        return None if proofs and proofs + differently_worded >= self._min_proofs else positions[-1]

    # --- pairs: their members are chosen by what each shows alone ------------------------------------------------

    def _candidate_pairs(self, failing: Mapping[int, Observation]) -> list[Key]:
        """Pairs that may be behind it, the likeliest first: those of which one member alone shows most of what is wrong.

        failing: what was observed in the cases by which members are chosen.
        """
        mistakes = enumerate(self.exercise.mistakes)
        members = [n for n, mistake in mistakes if isinstance(mistake.wrong, Patch) and "+" not in mistake.id]
        pools = []
        for i, actual in failing.items():
            members = [n for n in members if self._may_take_part(n, i, actual)]
            pools += self._pools(members, i, actual)
            if not all(pools):
                return []
        shows = {
            n: {(i, name) for i, actual in failing.items() for name in self._explained(n, i, actual)} for n in members
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
        plain = [
            name
            for name, expected in self.runs.expected[i].parts.items()
            if (part := actual.parts.get(name)) is not None
            and (expected.role == "flag" or (part.kind == "none" and expected.array is not None))
            and not self.runs.same_part(i, expected, part)
        ]
        explained = {n: self._explained(n, i, actual) for n in members} if plain else {}
        return [{n for n in members if name in explained[n]} for name in plain]

    def _explained(self, number: int, i: int, actual: Observation) -> set[str]:
        """The names of the wrong parts that a mistake alone shows in the same way; '' for a failure."""
        mistake = self.runs.show((number,), i).actual
        if mistake.failure or actual.failure:
            return {""} if same_failure(mistake, actual) else set()
        return {
            name
            for name, (right, wrong, part) in self._parts(i, mistake, actual).items()
            if self.runs.same_part(i, wrong, part) and not self.runs.same_part(i, right, part)
        }

    def _may_take_part(self, number: int, i: int, actual: Observation) -> bool:
        """Whether a mistake can be one of two behind what was observed: alone, it breaks no correct part."""
        mistake = self.runs.show((number,), i)
        if not mistake.wrong:
            return True
        if mistake.actual.failure or actual.failure:
            return bool(actual.failure)  # in other words too: a second mistake may change the shapes that they tell
        for right, wrong, part in self._parts(i, mistake.actual, actual).values():
            if self.runs.same_part(i, right, part) and not self.runs.same_part(i, right, wrong):
                return False
            if as_array(wrong).shape not in (as_array(right).shape, as_array(part).shape):
                return False
        return True

    def _parts(self, i: int, mistake: Observation, actual: Observation) -> dict[str, tuple[Part, Part, Part]]:
        """Of each part, by name, what the reference, a mistake and the learner have; of those that the last two have."""
        expected, parts = self.runs.expected[i].parts, actual.parts
        return {
            name: (expected.get(name, NO_REFERENCE), part, parts[name])
            for name, part in mistake.parts.items()
            if name in parts
        }


def _both_fail(case: Case, mistake: Observation, actual: Observation) -> bool:
    """Both end in an exception, in whatever words: how it is raised depends on how a thing is written. Where a case must
    raise and neither does so as asked, it does not matter what they do in its place."""
    if case.raises is None:
        return all(failure and failure.kind == "exception" for failure in (mistake.failure, actual.failure))
    return not (raises_as_asked(case, mistake) or raises_as_asked(case, actual))
