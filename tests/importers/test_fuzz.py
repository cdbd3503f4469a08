"""However a log is damaged, an import gives a trace or one line that says why not.

The same for longer: ``python benchmarks/fuzz_importers.py --minutes 10``.
"""

import random
from collections import Counter
from itertools import islice

from leapmodel.importers import AUTO, FORMATS
from tests.importers.fuzzing import Case, cases, outcome, seeds

ROUNDS = 40


def test_damaged_logs_of_every_format(tmp_path):
    from_seeds = seeds()
    seen: Counter[str] = Counter()
    for case in islice(cases(random.Random(8), from_seeds), ROUNDS * len(from_seeds)):
        try:
            seen[outcome(case, tmp_path)] += 1
        except BaseException as error:
            error.add_note(f"{case}: {case.content[:4000]!r}")
            raise
        seen[case.format_name] += 1
        seen["contexts"] += case.contexts
        seen["predictions"] += case.predictions
    assert {*FORMATS, AUTO, "trace", "DataError", "contexts", "predictions"} <= seen.keys()
    assert seen["trace"] > ROUNDS


def test_good_logs_are_still_read(tmp_path):
    for seed in seeds():
        case = Case(seed, seed.content, seed.format_name, False, False, False, False)
        expected = "DataError" if seed.format_name == "swe-agent" else "trace"
        assert outcome(case, tmp_path) == expected, seed
