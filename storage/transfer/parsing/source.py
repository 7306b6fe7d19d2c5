"""Documents as an import consumes them, wherever they are parsed."""

from collections.abc import AsyncGenerator, Callable
from typing import BinaryIO, Protocol

from typing_extensions import override

from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.parsing.document import Document, StepBatch, never


class DocumentSource(Protocol):
    """A document to import. Call `begin`, then consume `batches`; after the last one, `warnings` are complete."""

    warnings: ImportWarnings

    async def begin(self) -> str:
        """Detects the format and returns its name. Raises BadInput for an unknown one."""

    def batches(self) -> AsyncGenerator[StepBatch, None]:
        """Yields the steps in order. Raises BadInput at the end of a document of which no record fits the format."""


class LocalSource(DocumentSource):
    """A document parsed in this process, between commits. Once `stopped` is true, it is read as if it ended there."""

    def __init__(
        self, name: str, stream: BinaryIO, format: str | None = None, stopped: Callable[[], bool] = never
    ) -> None:
        self._arguments = (name, stream, format)
        self._stopped = stopped
        self.warnings = ImportWarnings()

    @override
    async def begin(self) -> str:
        self._document = Document(*self._arguments)
        self.warnings = self._document.warnings
        return self._document.format

    @override
    async def batches(self) -> AsyncGenerator[StepBatch, None]:
        for batch in self._document.batches(self._stopped):
            yield batch
