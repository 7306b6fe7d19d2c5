"""Random logs that a store admits."""

from collections.abc import Sequence

from storage import errors
from storage.events import Event, SurfaceHide, SurfaceOp, Surfacing
from storage.log.admission import Admission
from storage.log.state import LogState
from storage.views.surface import Surface
from tests.storage.views.test_surface_random import DRAWN, placed


def admitted(drawn: Sequence[Event]) -> list[Event]:
    """The events that a log admits in turn; a replacement that finds no nodes is appended instead."""
    admission, taken = Admission(LogState(), (), 0), []
    for event in drawn:
        try:
            admission.admit(_plain(event), "")
        except errors.SapwoodError:
            continue
        taken.append(event)
    admission, surface, log = Admission(LogState(), (), 0), Surface(), []
    for event in placed(taken):
        try:
            surface.check_replace(event)
        except errors.BadInput:
            event = event.model_copy(update={"surface_op": SurfaceOp()})
        surface.add(admission.admit(event, ""))
        log.append(event.model_copy(update={"seq": -1}))
    return log


def _plain(event: Event) -> Event:
    match event:
        case SurfaceHide():
            return event.model_copy(update={"from_seq": 0, "to_seq": 0})
        case Surfacing():
            return event.model_copy(update={"surface_op": SurfaceOp()})
    return event


ADMITTED = DRAWN.map(admitted)
