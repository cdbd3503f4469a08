"""Where an argument's value comes from: copy rules, and which of them holds for which argument.

Each rule names one value or does not apply:

``after``     what the slot held most often right after the same action in earlier tasks;
``usual``     what it held most often after an action of the same shape;
``constant``  what it held most often at all;
``latest``    what it held last, in whatever earlier task;
``same``      what it held last in this task;
``before``    what it held the time before that in this task;
``next``      the number after the last one, or the text with the next number at its end;
``named``     the value of a field of that name in the last texts, one not used yet;
``quoted``    a quoted word of the last texts, not used yet: the first one, or the last;
``alike``     a word that looks like the slot's earlier values, likewise;
``copy``      what another slot held last in this task: a rule for each pair of slots, followed
              once it was right.

A slot is ``tool.key``. How often each rule was right for a slot, and right after an action of a
certain shape, is counted on finished tasks with what was known before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from leapmodel.drafts.history import History
from leapmodel.drafts.shapes import Call, parse_action, render
from leapmodel.drafts.successors import Successors, add_to
from leapmodel.drafts.texts import SeenText, mask

_PRIOR = 2.0  # trials that a rule's record in general counts for, against its record here
_MASKS = 3  # kinds of values of a slot that are looked for in texts
_WHOLE_NUMBER = re.compile(r"-?\d{1,15}")
_TEXT_WITH_NUMBER = re.compile(r'("(?:[^"]*\D)?)(\d{1,15})"')
_LONGEST_NUMBERED = 200

Tally = list[int]  # [right, tried]


class _Where:
    """A call about to be filled in: what stands before it, in the task and in its own group."""

    __slots__ = ("action", "history", "shape", "values")

    def __init__(self, history: History) -> None:
        self.history = history
        self.action = history.actions[0]
        self.shape = history.shapes[0]
        self.values = history.values

    def step(self, call: Call, values: Sequence[str]) -> None:
        """Go on to the next call of the group."""
        self.values = dict(self.values)
        for slot, value in zip(call.slots, values, strict=True):
            self.values[slot] = (value, *self.values.pop(slot, ()))
        self.action, self.shape = render([call], [values]), call.shape


class ArgumentRules:
    """Turns a shape that was seen before into an action, and says how likely that is right.

    Examples
    --------
    >>> rules = ArgumentRules()
    >>> rules.learn([(History(), 'cd({"to":"x"})')])
    >>> rules.fill("cd(to)", History())
    ('cd({"to":"x"})', 0.5)
    """

    def __init__(self) -> None:
        self._calls: dict[str, tuple[Call, ...]] = {}
        self._after: dict[tuple[str, str], Successors] = {}
        self._usual: dict[tuple[str, str], Successors] = {}
        self._constant: dict[str, Successors] = {}
        self._latest: dict[str, str] = {}
        self._masks: dict[str, Successors] = {}
        # A rule goes by its name in angle brackets, a copy by the slot that it copies from.
        self._tallies: dict[str, dict[str, Tally]] = {}
        self._tallies_after: dict[tuple[str, str], dict[str, Tally]] = {}
        self._in_general: dict[str, Tally] = {}
        self._copies: Tally = [0, 0]  # all copy rules together

    def fill(self, shape: str, history: History, *, above: float = 0.0) -> tuple[str, float] | None:
        """Return an action of a shape, and the probability that all its arguments are right.

        Parameters
        ----------
        shape : str
            One that was learned; any other is taken for an action without arguments.
        history : History
            The task so far.
        above : float, default 0
            A filling no likelier right than this is of no use and is given up on.

        Returns
        -------
        (str, float) or None
            None if no rule names a value for some argument, or it was given up.
        """
        calls = self._calls.get(shape, ())
        where = _Where(history)
        chance = 1.0
        filled = []
        for number, call in enumerate(calls):
            values = []
            for slot, key in zip(call.slots, call.keys, strict=True):
                value, right = self._best(slot, key, where)
                chance *= right
                if value is None or chance <= above:
                    return None
                values.append(value)
            filled.append(render([call], [values]))
            if number + 1 < len(calls):
                where.step(call, values)
        if chance <= above:
            return None
        return "\n".join(filled) if calls else shape, chance

    def learn(self, steps: Iterable[tuple[History, str | None]]) -> None:
        """Learn from the actions of one finished task, each with the history it was decided in.

        All rules are judged first, with what was known before the task, then its values are taken
        in: so a rule's record is that of a draft which never saw the task.
        """
        taught = []
        for history, action in steps:
            if action is None:
                continue
            shape, calls = parse_action(action)
            self._calls.setdefault(shape, calls)
            where = _Where(history)
            for number, call in enumerate(calls):
                for slot, key, value in zip(call.slots, call.keys, call.values, strict=True):
                    self._judge(slot, key, value, where)
                    taught.append((slot, where.action, where.shape, value))
                if number + 1 < len(calls):
                    where.step(call, call.values)
        for slot, before, shape_before, value in taught:
            add_to(self._after, (slot, before), value)
            add_to(self._usual, (slot, shape_before), value)
            add_to(self._constant, slot, value)
            add_to(self._masks, slot, mask(value))
            self._latest[slot] = value

    def _best(self, slot: str, key: str, where: _Where) -> tuple[str | None, float]:
        tallies = self._tallies.get(slot, {})
        tallies_after = self._tallies_after.get((slot, where.shape), {})
        best: tuple[str | None, float] = (None, 0.0)

        def consider(rule: str, value: str, in_general: Tally | None) -> None:
            nonlocal best
            right, tried = in_general or (0, 0)
            chance = (right + 0.5) / (tried + 1)
            for tally in (tallies.get(rule), tallies_after.get(rule)):
                if tally is not None:
                    chance = (tally[0] + _PRIOR * chance) / (tally[1] + _PRIOR)
            if chance > best[1]:
                best = value, chance

        for rule, value in self._named_by_rules(slot, key, where):
            consider(rule, value, self._in_general.get(rule))
        for source, values in where.values.items():
            tally = tallies.get(source)
            if tally is not None and tally[0]:
                consider(source, values[0], self._copies)
        return best

    def _judge(self, slot: str, key: str, actual: str, where: _Where) -> None:
        tallies = self._tallies.setdefault(slot, {})
        tallies_after = self._tallies_after.setdefault((slot, where.shape), {})
        for rule, value in self._named_by_rules(slot, key, where):
            right = value == actual
            for table in (tallies, tallies_after, self._in_general):
                _count(table, rule, right)
        for source, values in where.values.items():
            if source == slot:
                continue
            right = values[0] == actual
            self._copies[0] += right
            self._copies[1] += 1
            if _count(tallies, source, right):
                _count(tallies_after, source, right)

    def _named_by_rules(self, slot: str, key: str, where: _Where) -> Iterator[tuple[str, str]]:
        """Yield the rules that apply, copies aside, and the values they name."""
        after = self._after.get((slot, where.action))
        if after is not None:
            yield "<after>", after.top
        usual = self._usual.get((slot, where.shape))
        if usual is not None:
            yield "<usual>", usual.top
        constant = self._constant.get(slot)
        if constant is not None:
            yield "<constant>", constant.top
            yield "<latest>", self._latest[slot]
        own = where.values.get(slot, ())
        if own:
            yield "<same>", own[0]
            following = following_number(own)
            if following is not None:
                yield "<next>", following
            if len(own) > 1:
                yield "<before>", own[1]
        if where.history.texts:
            yield from self._named_by_texts(slot, key, own, where.history.texts)

    def _named_by_texts(
        self, slot: str, key: str, used: Sequence[str], texts: Sequence[SeenText]
    ) -> Iterator[tuple[str, str]]:
        named = _unused((text.named.get(key, ()) for text in texts), used)
        if named:
            yield "<named>", named[0]
        quoted = _unused((text.quoted for text in texts), used)
        if quoted:
            yield "<quoted first>", quoted[0]
            yield "<quoted last>", quoted[-1]
        masks = self._masks.get(slot)
        if masks is None:
            return
        common = list(reversed(masks.counts))[:_MASKS]
        alike = _unused(
            ([v for m in common for v in text.alike.get(m, ())] for text in texts), used
        )
        if alike:
            yield "<alike first>", alike[0]
            yield "<alike last>", alike[-1]


def _count(table: dict[str, Tally], rule: str, right: bool) -> int:
    """Count one trial of a rule and return how often it has been right."""
    tally = table.get(rule)
    if tally is None:
        tally = table[rule] = [0, 0]
    tally[0] += right
    tally[1] += 1
    return tally[0]


def following_number(values: Sequence[str]) -> str | None:
    """Return what comes after a slot's last values, newest first, or None if they don't count.

    The step is that between the last two if they differ only in their number, else 1.

    Examples
    --------
    >>> following_number(["3", "1"]), following_number(['"page_09"']), following_number(['"x"'])
    ('5', '"page_10"', None)
    """
    last = _numbered(values[0])
    if last is None:
        return None
    head, digits = last
    earlier = _numbered(values[1]) if len(values) > 1 else None
    step = int(digits) - int(earlier[1]) if earlier is not None and earlier[0] == head else 1
    following = int(digits) + (step or 1)
    if not head:
        return str(following)
    return f'{head}{following:0{len(digits)}d}"' if following >= 0 else None


def _numbered(value: str) -> tuple[str, str] | None:
    """Return the number, or what stands before the number at a text's end, and its digits."""
    if len(value) > _LONGEST_NUMBERED:
        return None
    if _WHOLE_NUMBER.fullmatch(value):
        return "", value
    text = _TEXT_WITH_NUMBER.fullmatch(value)
    return None if text is None else (text[1], text[2])


def _unused(values: Iterable[Sequence[str]], used: Sequence[str]) -> Sequence[str]:
    """Return the values of the first text that has some that were not used, without the used."""
    for of_text in values:
        left = [value for value in of_text if value not in used]
        if left:
            return left
    return ()
