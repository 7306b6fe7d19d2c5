"""What `sapwood import` says when it is done."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from server.commands.terminal import fail, print_json
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.importing import Imported

COLUMNS = {
    "sessions": "Sessions",
    "forks": "Forks",
    "nodes": "Other nodes",
    "events": "Events",
    "known": "Here before",
}
ROWS_BY_FILE = 20
"""Up to so many files, each has a row; more are summed by format."""

WIDTH = 200
"""Characters of a line where there is no terminal."""


class Outcome(NamedTuple):
    """What came of a file."""

    format: str
    name: str
    done: Imported

    def warnings(self) -> int:
        """How many losses it had, of all kinds."""
        return sum(self.done.losses.kinds().values())


@dataclass
class Report:
    """What was imported, what failed and what was passed over."""

    as_json: bool
    dry: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def add(self, format: str, name: str, done: Imported) -> None:
        """Takes down what came of a file; one of which a session was refused has failed, too."""
        self.outcomes.append(Outcome(format, name, done))
        if done.refused:
            key, message = next(iter(done.refused.items()))
            others = f" (and {len(done.refused) - 1} more sessions)" if len(done.refused) > 1 else ""
            self.fail(name, f"session {key}: {message}{others}")

    def fail(self, name: str, message: str) -> None:
        """Takes down a file that did not come in whole, and says so."""
        self.failed[name] = message
        fail(message if message.startswith(name) else f"{name}: {message}")

    def leave(self, name: str, message: str, *, expected: bool) -> None:
        """Takes down a file that is no log: as failed if one was expected there, else as passed over."""
        if expected:
            self.fail(name, message)
        else:
            self.skipped.append(name)

    def print(self) -> None:
        """The summary, for people or for machines."""
        if self.as_json:
            print_json(self._document())
            return
        console = Console()
        if not console.is_terminal:
            console.width = WIDTH
        if self.outcomes:
            console.print(self._table())
        if any(outcome.warnings() for outcome in self.outcomes):
            self._print_warnings(console)
        if self.skipped:
            names = ", ".join(self.skipped[:5])
            more = f" and {len(self.skipped) - 5} more" if len(self.skipped) > 5 else ""
            _line(console, f"Passed over, as no logs by name and content: {names}{more}")
        if self.dry:
            _line(console, "Nothing was written: this was a dry run.")

    def _document(self) -> dict[str, Any]:
        return {
            "dryRun": self.dry,
            "imported": [
                {
                    "format": format,
                    "files": [name],
                    "sessions": done.sessions,
                    "forks": done.forks,
                    "otherNodes": done.nodes,
                    "known": done.known,
                    "events": done.events,
                    "ids": list(done.ids.values()),
                    "warnings": done.warnings,
                    "warningKinds": done.losses.kinds(),
                }
                for format, name, done in self.outcomes
            ],
            "failed": [{"files": [name], "message": message} for name, message in self.failed.items()],
            "skipped": self.skipped,
        }

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        by_file = len(self.outcomes) <= ROWS_BY_FILE
        groups: dict[str, list[Outcome]] = defaultdict(list)
        for outcome in self.outcomes:
            groups[outcome.name if by_file else outcome.format].append(outcome)
        table.add_column("File" if by_file else "Files", overflow="fold", justify="left" if by_file else "right")
        table.add_column("Format", no_wrap=True)
        for title in (*COLUMNS.values(), "Warnings"):
            table.add_column(title, justify="right")
        for name, group in groups.items():
            _add_row(table, name if by_file else f"{len(group):,}", group[0].format, group)
        if len(groups) > 1:
            table.add_section()
            _add_row(table, f"{len(self.outcomes):,}" if not by_file else "all", "", self.outcomes)
        return table

    def _print_warnings(self, console: Console) -> None:
        """One line per format and kind of loss, over all files."""
        losses: dict[str, ImportWarnings] = defaultdict(ImportWarnings)
        for format, _, done in self.outcomes:
            losses[format].include(done.losses)
        for format, found in losses.items():
            for warning in found.messages():
                _line(console, f"{format}: {warning}")


def _add_row(table: Table, name: str, format: str, group: Sequence[Outcome]) -> None:
    counts = [sum(getattr(outcome.done, field) for outcome in group) for field in COLUMNS]
    counts.append(sum(outcome.warnings() for outcome in group))
    table.add_row(name, format, *(f"{count:,}" for count in counts))


def _line(console: Console, content: str) -> None:
    console.print(content, markup=False, highlight=False, soft_wrap=True)
