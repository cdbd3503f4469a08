"""Made-up runs of an agent, with texts as long as those in real logs, for the logs to be made of.

Sizes are near the medians of real agent logs: a system prompt of 3 KB, calls of 100 bytes, tool
results from a line to 20 KB (median 0.8 KB), a thought of 150 bytes before a call.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

_TEXT = (
    "the file was not found in this folder so I will look at src/paths.py line 48 def read_all "
    'return {"status": "ok"} error: expected 3 rows\n    for row in table:\n\t"name": "Sofie", '
    "price 12.50 EUR -> commit 8f3a1c user_id=4711 2026-02-03T12:00:00Z https://example.org/a?b=c"
)
_WORDS = [*_TEXT.split(" ") * 6, "Žofie", "12.50 €"]
_TOOLS = ("read_file", "search", "run_command", "get_order", "edit_file", "list_folder")


@dataclass(frozen=True)
class Turn:
    """One decision of the agent: text, its calls (none: a reply) and their results."""

    text: str
    calls: tuple[tuple[str, dict[str, object]], ...]
    results: tuple[str, ...]
    started_s: float
    gen_s: float
    tool_s: float


@dataclass(frozen=True)
class Talk:
    """One run of one task."""

    task: str
    number: int
    system: str
    ask: str
    turns: tuple[Turn, ...]


def talks(seed: int = 0, mean_steps: int = 8, *, terse: bool = False) -> Iterator[Talk]:
    """Yield run after run without end, the same for the same seed.

    Terse ones have the sizes of real BFCL logs, the densest in steps: results of a line, and calls
    of which a task makes a few again and again.
    """
    rng = random.Random(seed)
    book = " ".join(rng.choices(_WORDS, k=40_000))

    def text(n: int) -> str:
        at = rng.randrange(len(book) - 20_000)
        return book[at : at + n]

    def call() -> tuple[str, dict[str, object]]:
        if terse:
            return rng.choice(_TOOLS), {"path": text(10), "pattern": text(6)}
        arguments = {"path": text(40), "limit": rng.randrange(200), "pattern": text(25)}
        return rng.choice(_TOOLS), arguments

    system = text(1_000 if terse else 3_000)
    size, spread, longest = (5.2, 0.8, 1_500) if terse else (6.7, 1.2, 20_000)
    number, clock = 0, 1_770_000_000.0
    while True:
        turns = []
        n_steps = max(2, round(rng.gauss(mean_steps, mean_steps / 4)))
        again = [call() for _ in range(n_steps // 4)] if terse else []
        for step in range(n_steps):
            gen_s, tool_s = rng.gammavariate(2.0, 1.5) + 0.05, rng.expovariate(2.0)
            calls: list[tuple[str, dict[str, object]]] = []
            for _ in range(0 if step == n_steps - 1 else 1 + (rng.random() < 0.15)):
                calls.append(rng.choice(again) if again else call())
            results = tuple(
                text(min(longest, int(rng.lognormvariate(size, spread)))) for _ in calls
            )
            said = text(rng.randrange(50, 250) if calls else 600)
            turns.append(Turn(said, tuple(calls), results, clock, gen_s, tool_s))
            clock += gen_s + tool_s + 0.01
        yield Talk(f"task-{number}", number, system, text(400), tuple(turns))
        number += 1
        clock += 60
