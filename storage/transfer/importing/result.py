"""What an import did."""

from dataclasses import dataclass, field

from storage.transfer.formats.shared.foreign import ImportWarnings


@dataclass(slots=True)
class ImportResult:
    """The outcome of an import.

    `ids` maps the key that each session has in the source to its id here, and includes sessions that already existed.
    Of the sessions created, `sessions` counts those that the source counts as sessions, `forks` those that share events
    with another (whether counted or not), and `nodes` those that are neither. `known` counts sessions that already
    existed, `events` the events appended. `refused` maps the key of each session that was not imported whole to the
    reason. `warnings` holds one line for each kind in `warning_counts`.
    """

    warning_counts: ImportWarnings
    ids: dict[str, str] = field(default_factory=dict)
    sessions: int = 0
    forks: int = 0
    nodes: int = 0
    known: int = 0
    events: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
