"""How a watch goes on when its stream ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Union

from . import _requests
from ._outcome import ForeignAnswer, Lost, Outcome, Refused, refusal_of
from ._question import Question
from .errors import SamyaError
from .types import EntityState

#: How long a watch that has broken off looks for another target, in seconds.
RESUME_TIME = 30.0

#: The longest line of a watch, in bytes.
MAX_LINE = 1 << 20

# The pause before a watch is resumed that has told nothing, doubled up to _LAST_RESUME.
_FIRST_RESUME, _LAST_RESUME = 0.05, 2.0


class WatchState:
    """A watch: a state moves the resume token, and the end of a stream leads to a further stream.

    A problem that no repeat heals ends it.
    """

    def __init__(self, entity: str, token: str) -> None:
        self.token = token
        self._entity = entity
        self._pause = _FIRST_RESUME

    def line(self, line: bytes) -> Union[EntityState, Outcome]:
        """Reads a line: a state, or the outcome that ends the stream."""
        try:
            body = json.loads(line)
        except ValueError as e:
            return Lost(e)
        if not isinstance(body, Mapping):
            return Lost(ForeignAnswer("a line that is no object"))
        refusal = refusal_of(body.get("problem"))
        if refusal is not None:
            return Refused(refusal)
        state = _requests.state(body)
        self.token = state.resume_token
        self._pause = _FIRST_RESUME
        return state

    def ended(self, outcome: Outcome) -> Union[float, SamyaError]:
        """After the end of a stream: how long to pause, or the error that ends the watch."""
        q = Question(self._entity)
        if q.judge(outcome):
            return q.final()
        seconds = self._pause
        self._pause = min(2 * seconds, _LAST_RESUME)
        return seconds
