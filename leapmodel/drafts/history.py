"""What a draft knows of the task it is in: the actions so far, their values, the texts seen."""

from __future__ import annotations

from leapmodel.actions import RESPOND
from leapmodel.drafts.interface import Context
from leapmodel.drafts.shapes import parse_action
from leapmodel.drafts.texts import SeenText, read_text

START_OF_TASK = "<start of task>"
START_OF_SEGMENT = "<start of segment>"
UNPARSED = "<unparsed>"

_LONGEST = 8  # actions, and values of a slot, that are remembered
_MOST_SLOTS = 32
_MOST_TEXTS = 4


class History:
    """The features of a task in progress; each list has the newest first and is bounded.

    Attributes
    ----------
    shapes, actions : tuple of str
        The last actions without and with their values, and markers where a segment began. The
        marker takes the place of the reply before it, which says no more.
    values : dict of str to tuple of str
        The last values of each slot (``tool.key``); the slot used last comes last.
    texts : tuple of SeenText
        The last texts.
    message : str or None
        The last message, as in :class:`~leapmodel.drafts.interface.Context`.

    Examples
    --------
    >>> history = History()
    >>> history.enter(Context(starts_segment=True))
    >>> history.commit('cd({"to":"x"})')
    >>> history.shapes, history.values
    (('cd(to)', '<start of task>'), {'cd.to': ('"x"',)})
    """

    __slots__ = ("actions", "message", "shapes", "texts", "values")

    def __init__(self) -> None:
        self.shapes: tuple[str, ...] = (START_OF_TASK,)
        self.actions: tuple[str, ...] = (START_OF_TASK,)
        self.values: dict[str, tuple[str, ...]] = {}
        self.texts: tuple[SeenText, ...] = ()
        self.message: str | None = None

    def fork(self) -> History:
        """Return a copy that can be led on with actions not committed yet."""
        copy = History()
        copy.shapes, copy.actions, copy.texts = self.shapes, self.actions, self.texts
        copy.values = dict(self.values)
        copy.message = self.message
        return copy

    def enter(self, context: Context) -> None:
        """Take in what is new before a step."""
        if context.starts_segment and self.actions[0] != START_OF_TASK:
            skip = self.actions[0] == RESPOND
            self._push(START_OF_SEGMENT, START_OF_SEGMENT, skip=int(skip))
        if context.observation:
            self._see(context.observation)
        if context.message:
            self._see(context.message)
            self.message = context.message

    def commit(self, action: str | None) -> None:
        """Take in an action."""
        if action is None:
            self._push(UNPARSED, UNPARSED)
            return
        shape, calls = parse_action(action)
        self._push(shape, action)
        for call in calls:
            for slot, value in zip(call.slots, call.values, strict=True):
                earlier = self.values.pop(slot, ())
                self.values[slot] = (value, *earlier[: _LONGEST - 1])
        while len(self.values) > _MOST_SLOTS:
            del self.values[next(iter(self.values))]

    def contexts(self, order: int) -> list[tuple[str, ...]]:
        """Return the contexts of the next action, the longest first, each within the one before.

        Up to ``order`` shapes, then the same with the last action's values, then actions alone.

        Examples
        --------
        >>> history = History()
        >>> history.commit('cd({"to":"x"})')
        >>> for context in history.contexts(2):
        ...     print(context)
        ('cd({"to":"x"})', '<start of task>')
        ('cd(to)', '<start of task>')
        ('cd(to)',)
        ()
        """
        shapes, actions = self.shapes, self.actions
        found: list[tuple[str, ...]] = [
            actions[: order + 2],
            actions[:order],
            (actions[0], *shapes[1:order]),
        ]
        found += [shapes[:length] for length in range(order, -1, -1)]
        # A short history, or actions without values, make neighbours equal: each counts once.
        return [one for at, one in enumerate(found) if at == 0 or one != found[at - 1]]

    def _push(self, shape: str, action: str, skip: int = 0) -> None:
        self.shapes = (shape, *self.shapes[skip : skip + _LONGEST - 1])
        self.actions = (action, *self.actions[skip : skip + _LONGEST - 1])

    def _see(self, text: str) -> None:
        self.texts = (read_text(text), *self.texts[: _MOST_TEXTS - 1])
