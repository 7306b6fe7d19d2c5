"""The summary that `sapwood import` prints at the end."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from server.commands.terminal import fail, print_json
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.importing import ImportResult

COLUMNS = {
    "sessions": "Sessions",
    "forks": "Forks",
    "nodes": "Other nodes",
    "events": "Events",
    "known": "Already stored",
}
ROWS_BY_FILE = 20
"""Up to this many files have a row each; more are summed by format."""

WIDTH = 200
"""The width of a line without a terminal, in characters."""


class Outcome(NamedTuple):
    """The result of a file."""

    format: str
    name: str
    result: ImportResult

    def warnings(self) -> int:
        """The number of warnings, of all kinds."""
        return sum(self.result.warning_counts.kinds().values())


@dataclass
class Report:
    """What was imported, what failed and what was skipped."""

    as_json: bool
    dry: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def add(self, format: str, name: str, result: ImportResult) -> None:
        """Adds the result of a file. If a session was refused, or a conversation left out, the file has failed too."""
        self.outcomes.append(Outcome(format, name, result))
        if result.refused:
            key, message = next(iter(result.refused.items()))
            others = f" (and {len(result.refused) - 1} more sessions)" if len(result.refused) > 1 else ""
            self.fail(name, f"session {key}: {message}{others}")
        elif lost := result.warning_counts.conversations_left_out:
            noun = "conversation" if lost == 1 else "conversations"
            self.fail(name, f"{lost} {noun} left out: {result.warning_counts.first_broken}")

    def fail(self, name: str, message: str) -> None:
        """Adds a file that was not imported whole, and prints the message."""
        self.failed[name] = message
        fail(message if message.startswith(name) else f"{name}: {message}")

    def reject(self, name: str, message: str, *, expected: bool) -> None:
        """Adds a file that is not a log: as failed if it was `expected` to be one, otherwise as skipped."""
        if expected:
            self.fail(name, message)
        else:
            self.skipped.append(name)

    def print(self) -> None:
        """Prints the summary, as tables or as JSON."""
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
            _line(console, f"Skipped, as neither name nor content is that of a log: {names}{more}")
        if self.dry:
            _line(console, "Nothing was written: this was a dry run.")

    def _document(self) -> dict[str, Any]:
        return {
            "dryRun": self.dry,
            "imported": [
                {
                    "format": format,
                    "files": [name],
                    "sessions": result.sessions,
                    "forks": result.forks,
                    "otherNodes": result.nodes,
                    "known": result.known,
                    "events": result.events,
                    "ids": list(result.ids.values()),
                    "warnings": result.warnings,
                    "warningKinds": result.warning_counts.kinds(),
                }
                for format, name, result in self.outcomes
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
        """Prints one line for each format and kind of warning, over all files."""
        by_format: dict[str, ImportWarnings] = defaultdict(ImportWarnings)
        for format, _, result in self.outcomes:
            by_format[format].include(result.warning_counts)
        for format, warnings in by_format.items():
            for warning in warnings.messages():
                _line(console, f"{format}: {warning}")


def _add_row(table: Table, name: str, format: str, group: Sequence[Outcome]) -> None:
    counts = [sum(getattr(outcome.result, field) for outcome in group) for field in COLUMNS]
    counts.append(sum(outcome.warnings() for outcome in group))
    table.add_row(name, format, *(f"{count:,}" for count in counts))


def _line(console: Console, content: str) -> None:
    console.print(content, markup=False, highlight=False, soft_wrap=True)
