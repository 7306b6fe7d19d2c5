"""Reads pages of a session's conversation, from as little of its log as possible."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from operator import attrgetter

from storage.database import Queries
from storage.forms import read_forms
from storage.log import reading
from storage.log.reading import EventBatch, Span
from storage.readers.conversation_cards import CardReading, ShownCard, read_hides
from storage.scope import Scope
from storage.session import SessionMeta
from storage.views.conversation import form_ids, with_forms
from storage.views.conversation_entry import CardEntry, Entry, PlaceholderEntry, TextEntry, ToolEntry
from storage.views.conversation_window import TOOLS, Window, is_unanswered

MAX_ENTRIES = 1_000
MAX_BYTES = 4 * 1024 * 1024
DEFAULT = 200
logger = logging.getLogger("sapwood.cards")


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Entries in seq order. Read on from `next_seq`, or back from `prev_seq` (None: nothing before)."""

    entries: list[Entry]
    next_seq: int
    prev_seq: int | None
    head: int


class ConversationReader:
    """The conversations of sessions."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def page(
        self,
        meta: SessionMeta,
        *,
        from_seq: int | None = None,
        before_seq: int | None = None,
        first: int | None = None,
        last: int | None = None,
        include_system: bool = False,
    ) -> ConversationPage:
        """A page of the session's conversation (see `read_conversation`). Forms without a definition are degraded.

        Logs cards that can't be read.
        """

        async def query(queries: Queries) -> ConversationPage:
            page = await read_conversation(
                queries,
                meta,
                from_seq=from_seq,
                before_seq=before_seq,
                first=first,
                last=last,
                include_system=include_system,
            )
            return await _with_forms(queries, meta.space, page)

        page = await self._scope.read(query)
        for entry in page.entries:
            if isinstance(entry, PlaceholderEntry):
                logger.warning("session %s, event %d: %s: %s", meta.id, entry.seq, entry.text, entry.reason)
        return page


async def _with_forms(queries: Queries, space: str, page: ConversationPage) -> ConversationPage:
    """The page with the form definitions of today."""
    wanted = form_ids(page.entries)
    if not wanted:
        return page
    return replace(page, entries=with_forms(page.entries, await read_forms(queries, space, wanted)))


async def read_conversation(
    queries: Queries,
    meta: SessionMeta,
    *,
    from_seq: int | None = None,
    before_seq: int | None = None,
    first: int | None = None,
    last: int | None = None,
    include_system: bool = False,
) -> ConversationPage:
    """A page of the conversation: forward from `from_seq`, or with `last` the entries before `before_seq`.

    The entries are those of the whole log's `conversation`. A page ends before 4 MiB but holds at least one entry.
    Raises BadInput for negative or too large numbers.

    It reads the events of the page and a few around it, later hides, the newest versions of its cards and, where a call
    has no result, later calls and results until there is one.
    """
    span = reading.asked(
        meta.head,
        from_seq=from_seq,
        before_seq=before_seq,
        first=first,
        last=last,
        most=MAX_ENTRIES,
        default=DEFAULT,
    )
    if span.count == 0 or span.start >= span.stop:
        return ConversationPage([], *span.ends(span.start), meta.head)
    entries, reached = await _Reader(queries, meta, span, include_system=include_system).read()
    return ConversationPage(entries, *span.ends(reached), meta.head)


async def last_shown(queries: Queries, meta: SessionMeta) -> TextEntry | CardEntry | PlaceholderEntry | None:
    """The last text or card of the conversation; None if there is none. Includes partial answers, not system messages.

    Hiding its `source_event_seqs` removes it.
    """
    span = Span(0, meta.head, meta.head, count=1, newest_first=True)
    entries, _ = await _Reader(queries, meta, span, tools=False).read()
    last = entries[-1] if entries else None
    return last if isinstance(last, TextEntry | CardEntry | PlaceholderEntry) else None


class _Reader:
    """Reads one page, without tool calls unless `tools`: finding their results may take reading a long log."""

    def __init__(
        self, queries: Queries, meta: SessionMeta, span: Span, *, include_system: bool = False, tools: bool = True
    ) -> None:
        self._queries = queries
        self._meta = meta
        self._span = span
        self._include_system = include_system
        self._tools = tools
        self._window = Window(span.stop if span.newest_first else span.start)
        self._cards = CardReading(queries, meta)

    async def read(self) -> tuple[list[Entry], int]:
        """The entries in seq order, and the seq that the page reaches."""
        span, window = self._span, self._window
        window.learn(await read_hides(self._queries, self._meta, window.high, self._meta.head))
        await self._grow(back=span.newest_first)
        while True:
            chosen, is_all = await self._chosen()
            if is_all and len(chosen) < span.count and not self._is_exhausted:
                await self._grow(back=span.newest_first)
            elif any(map(window.begins_too_late, chosen)):
                await self._grow(back=True)
            elif window.high < self._meta.head and any(map(window.ends_too_early, chosen)):
                await self._grow(back=False)
            elif window.tools_to < self._meta.head and any(map(is_unanswered, chosen)):
                await self._find_results()
            else:
                break
        if is_all and self._is_exhausted:
            reached = span.start if span.newest_first else span.stop
        else:
            reached = chosen[-1].seq if span.newest_first else chosen[-1].seq + 1
        return sorted(chosen, key=attrgetter("seq")), reached

    @property
    def _is_exhausted(self) -> bool:
        """Whether the window holds all of what is asked for."""
        return self._window.low <= self._span.start and self._span.stop <= self._window.high

    async def _grow(self, *, back: bool) -> None:
        window = self._window
        low, high = (0, window.low) if back else (window.high, self._meta.head)
        found = await self._events(low, high, newest_first=back)
        if back:
            window.grow(found.events, low=found.reached)
        else:
            window.grow(found.events, high=found.reached)

    async def _find_results(self) -> None:
        found = await self._events(self._window.tools_to, self._meta.head, types=TOOLS)
        self._window.learn(found.events, tools_to=found.reached)

    async def _events(
        self, low: int, high: int, *, newest_first: bool = False, types: Collection[str] | None = None
    ) -> EventBatch:
        """Reads as many events again as are known, which bounds the cost of folding them all again."""
        count = max(self._span.count + 1, self._window.tools_to - self._window.low)
        return await reading.read(
            self._queries, self._meta.segments, low, high, count, newest_first=newest_first, types=types
        )

    async def _chosen(self) -> tuple[list[Entry], bool]:
        """The first entries of the window in the page's direction, and whether there are no more in it."""
        span, window = self._span, self._window
        shown: list[Entry | ShownCard] = [
            *window.entries(include_system=self._include_system),
            *await self._cards.shown(window),
        ]
        shown = [
            candidate
            for candidate in shown
            if span.start <= candidate.seq < span.stop and (self._tools or not isinstance(candidate, ToolEntry))
        ]
        shown.sort(key=attrgetter("seq"), reverse=span.newest_first)
        chosen: list[Entry] = []
        left = MAX_BYTES
        for candidate in shown:
            if len(chosen) == span.count:
                return chosen, False
            entry = await self._cards.entry(candidate) if isinstance(candidate, ShownCard) else candidate
            if entry is None:
                continue
            left -= _size(entry)
            if left < 0 and chosen:
                return chosen, False
            chosen.append(entry)
        return chosen, True


def _size(entry: Entry) -> int:
    """Bytes of the texts that may be long."""
    match entry:
        case TextEntry():
            texts = [entry.content, entry.blocks]
        case CardEntry():
            texts = [entry.card, entry.payload]
        case PlaceholderEntry():
            texts = [entry.payload]
        case ToolEntry(invocation=call):
            texts = [call.input_params, call.output_preview, call.error, call.retrieval_details]
    return sum(len(text.encode()) for text in texts if text)
