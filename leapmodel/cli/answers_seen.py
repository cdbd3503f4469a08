"""What the answers to an agent's own contexts were like, and what may be amiss with them."""

from __future__ import annotations

from collections.abc import Iterator

from leapmodel.execution.own_contexts import decision, is_cut
from leapmodel.execution.talking.endpoint import Generation


class AnswersSeen:
    """Counts of a model's answers.

    Parameters
    ----------
    role : {"target", "draft"}
        Whose they are, for messages and options.
    """

    def __init__(self, role: str) -> None:
        self._role = role
        self._all = self._called = self._unreadable = self._cut = 0

    def __call__(self, answer: Generation) -> None:
        """Take an answer into account."""
        self._all += 1
        decided = decision(answer)
        self._called += bool(answer.tool_calls)
        self._unreadable += bool(answer.tool_calls) and decided is None and not is_cut(answer)
        self._cut += is_cut(answer) and decided is None

    def amiss(self, *, calls_tools: bool) -> Iterator[str]:
        """Say what may be amiss: a model that only ever talks looks like one that is always wrong.

        Parameters
        ----------
        calls_tools : bool
            Whether the agent does.
        """
        if self._all and calls_tools and not self._called:
            yield (
                f"no answer of the {self._role} called a tool: name the agent's tools"
                f""" (--{self._role}-extra '{{"tools": […]}}', or @FILE), and have the server"""
                " tell calls (vLLM: --enable-auto-tool-choice --tool-call-parser NAME)"
            )
        if self._unreadable:
            yield (
                f"{self._counted(self._unreadable)} called tools with arguments that are no JSON"
                " object, which is no action"
            )
        if self._cut:
            yield (
                f"{self._counted(self._cut)} had reached --{self._role}-tokens before they said"
                " what they decide"
            )

    def _counted(self, some: int) -> str:
        return f"{some} of {self._all} answers of the {self._role}"
