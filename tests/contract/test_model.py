"""Any sequence of commands leaves the store in the same state as a simple model."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from storage import errors
from storage.events import AssistantMessage, InsightDelivered, UserMessage
from storage.lifecycle import Fork, NewSession
from storage.session import SessionFilter, SessionStatus, SlotName
from storage.slots import InsightMode, SlotWrite
from storage.store import Store
from tests.conftest import OpenStore

ACTIVE, ARCHIVED = SessionStatus
INSIGHT, MEMORY = SlotName.INSIGHT, SlotName.MEMORY


@dataclass
class Session:
    """A session in the model. Each event of its log is (session of origin, seq, content)."""

    id: str
    parent: str | None
    index: int
    source: str | None = None
    cut: int | None = None
    log: list[tuple[str, int, str]] = field(default_factory=list)
    own_start: int = 0
    next_index: int = 0
    refs: list[str] = field(default_factory=list)
    status: SessionStatus = ACTIVE
    memory: tuple[str, int, int] | None = None
    insight: tuple[str | None, int] | None = None

    def write(self, content: str) -> None:
        self.log.append((self.id, len(self.log), content))


class Model:
    """A space in plain Python. A refused command raises the code of its error and changes nothing."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.roots = 0

    def ancestors(self, id: str) -> tuple[str, ...]:
        above: list[str] = []
        parent = self.sessions[id].parent
        while parent is not None:
            above.append(parent)
            parent = self.sessions[parent].parent
        return tuple(above)

    def children(self, id: str | None) -> list[Session]:
        return sorted((one for one in self.sessions.values() if one.parent == id), key=lambda one: one.index)

    def subtree(self, id: str) -> list[str]:
        return [id, *(below for child in self.children(id) for below in self.subtree(child.id))]

    def refs(self) -> set[tuple[str, str]]:
        return {(one.id, other) for one in self.sessions.values() for other in one.refs}

    def next_index(self, parent: str | None) -> int:
        if parent is None:
            self.roots += 1
            return self.roots - 1
        self.sessions[parent].next_index += 1
        return self.sessions[parent].next_index - 1

    def create(self, id: str, parent: str | None) -> None:
        if id in self.sessions:
            raise errors.DuplicateId(id)
        self.sessions[id] = Session(id, parent, self.next_index(parent))

    def fork(self, id: str, source: str, cut: int, parent: str | None, prompt: str | None) -> None:
        if id in self.sessions:
            raise errors.DuplicateId(id)
        shared = self.sessions[source].log
        if cut > len(shared):
            raise errors.BadInput("atSeq")
        made = Session(id, parent, self.next_index(parent), source, cut, shared[:cut], cut)
        if prompt is not None:
            made.write(prompt)
        self.sessions[id] = made

    def append(self, id: str, contents: list[str]) -> None:
        for content in contents:
            self.writable(id).write(content)

    def writable(self, id: str) -> Session:
        if self.sessions[id].status is ARCHIVED:
            raise errors.Archived(id)
        return self.sessions[id]

    def move(self, id: str, parent: str | None) -> None:
        moved = self.sessions[id]
        if moved.parent == parent:
            return
        above = {parent, *self.ancestors(parent)} if parent is not None else set()
        if id in above:
            raise errors.Cycle(id)
        below = self.subtree(id)
        joins = [(one, other) for one in below for other in self.sessions[one].refs if other in above]
        joins += [
            (one, other) for one in above if one is not None for other in self.sessions[one].refs if other in below
        ]
        if joins:
            raise errors.InvalidRef(id)
        moved.index = self.next_index(parent)
        moved.parent = parent

    def ref(self, source: str, target: str) -> None:
        if source == target or source in self.ancestors(target) or target in self.ancestors(source):
            raise errors.InvalidRef(source)
        if target not in self.sessions[source].refs:
            self.sessions[source].refs.append(target)

    def unref(self, source: str, target: str) -> None:
        if target in self.sessions[source].refs:
            self.sessions[source].refs.remove(target)

    def delete(self, id: str, cascade: bool) -> None:
        going = self.subtree(id)
        if len(going) > 1 and not cascade:
            raise errors.HasChildren(id)
        for gone in going:
            del self.sessions[gone]
        for one in self.sessions.values():
            one.refs = [target for target in one.refs if target not in going]

    def put_memory(self, id: str, content: str) -> None:
        written = self.writable(id)
        version = written.memory[1] if written.memory else 0
        written.memory = (content, version + 1, len(written.log))

    def put_insight(self, id: str, content: str, joined: bool) -> None:
        written = self.writable(id)
        pending, version = written.insight or (None, 0)
        if joined and pending is not None:
            content = f"{pending}\n\n{content}"
        written.insight = (content, version + 1)

    def consume(self, id: str) -> None:
        taken = self.writable(id)
        if taken.insight is not None and taken.insight[0] is not None:
            taken.write(taken.insight[0])
            taken.insight = (None, taken.insight[1])


class Play:
    """Runs each command on the store and on the model, and compares the outcomes."""

    def __init__(self, store: Store, space: str) -> None:
        self.store = store
        self.space = space
        self.model = Model()
        self.texts = (f"text {n}" for n in itertools.count())

    async def both(self, plain: Callable[[], None], real: Awaitable[Any]) -> None:
        expected: type[errors.SapwoodError] | None = None
        try:
            plain()
        except errors.SapwoodError as error:
            expected = type(error)
        try:
            await real
        except errors.SapwoodError as error:
            assert type(error) is expected, f"{error!r} instead of {expected}"
        else:
            assert expected is None, f"{expected} was not raised"

    def pick(self, choice: int) -> str:
        names = sorted(self.model.sessions)
        return names[choice % len(names)]

    def parent(self, choice: int) -> str | None:
        return None if choice % 4 == 0 else self.pick(choice // 4)

    async def do(self, command: str, a: int, b: int, c: int) -> None:
        model, sessions, tree, space = self.model, self.store.sessions, self.store.tree, self.space
        if not model.sessions:
            command = "create"
        match command:
            case "create":
                id, parent = f"s{a % 12:02}", self.parent(b) if model.sessions else None
                created = tree.create(space, NewSession(id=id, parent_id=parent))
                await self.both(lambda: model.create(id, parent), created)
            case "fork":
                id, source, parent = f"s{a % 12:02}", self.pick(b), self.parent(c)
                cut = c % (len(model.sessions[source].log) + 2)
                prompt = next(self.texts) if a % 2 else None
                wanted = Fork(source, at_seq=cut, id=id, parent_id=parent, as_root=parent is None, prompt=prompt)
                await self.both(lambda: model.fork(id, source, cut, parent, prompt), tree.fork(space, wanted))
            case "append":
                id, contents = self.pick(a), [next(self.texts) for _ in range(1 + b % 4)]
                appended = sessions.append(space, id, [UserMessage(content=content) for content in contents])
                await self.both(lambda: model.append(id, contents), appended)
            case "move":
                id, parent = self.pick(a), self.parent(b)
                await self.both(lambda: model.move(id, parent), tree.move(space, id, parent))
            case "ref":
                one, other = self.pick(a), self.pick(b)
                await self.both(lambda: model.ref(one, other), tree.add_ref(space, one, other))
            case "unref":
                one, other = self.pick(a), self.pick(b)
                await self.both(lambda: model.unref(one, other), tree.remove_ref(space, one, other))
            case "archive" | "restore":
                id, status = self.pick(a), ARCHIVED if command == "archive" else ACTIVE
                await sessions.set_status(space, id, status)
                model.sessions[id].status = status
            case "delete":
                id, cascade = self.pick(a), b % 2 == 1
                await self.both(lambda: model.delete(id, cascade), tree.delete(space, id, cascade))
            case "memory":
                id, content = self.pick(a), next(self.texts)
                write = SlotWrite(id, MEMORY, content)
                await self.both(lambda: model.put_memory(id, content), sessions.put_slot(space, write))
            case "insight":
                id, content, joined = self.pick(a), next(self.texts), b % 2 == 1
                mode = InsightMode.APPEND if joined else InsightMode.REPLACE
                write = SlotWrite(id, INSIGHT, content, mode)
                await self.both(lambda: model.put_insight(id, content, joined), sessions.put_slot(space, write))
            case "consume":
                id = self.pick(a)
                await self.both(lambda: model.consume(id), sessions.consume_insight(space, id, None, None, None))

    async def compare(self) -> None:
        await self.compare_forest()
        await self.compare_logs()
        await self.compare_digests()

    async def compare_forest(self) -> None:
        found = await self.store.tree.forest(self.space)
        assert found is not None
        ordered = [id for root in self.model.children(None) for id in self.model.subtree(root.id)]
        assert [node.id for node in found.nodes] == ordered
        for node in found.nodes:
            expected, document = self.model.sessions[node.id], node.document
            assert (document.parent_id, document.index) == (expected.parent, expected.index)
            assert document.ancestors == self.model.ancestors(node.id)
            assert document.child_count == len(self.model.children(node.id))
            assert list(document.refs) == expected.refs
            assert (document.source_session_id, document.fork_seq) == (expected.source, expected.cut)
            assert (node.session.status, node.session.head) == (expected.status, len(expected.log))
            assert (node.session.own_start, node.session.behind) == (expected.own_start, self.behind(expected))
        assert found.roots == [root.id for root in self.model.children(None)]
        assert set(found.refs) == self.model.refs()

    @staticmethod
    def behind(expected: Session) -> bool:
        return len(expected.log) > (expected.memory[2] if expected.memory else 0)

    async def compare_logs(self) -> None:
        for id, expected in self.model.sessions.items():
            meta = await self.store.sessions.get(self.space, id)
            assert meta is not None
            page = await self.store.sessions.events(meta, first=1_000)
            assert [event.seq for event in page.events] == list(range(len(expected.log)))
            assert [
                (event.session_id, event.seq, event.content)
                for event in page.events
                if isinstance(event, UserMessage | AssistantMessage | InsightDelivered)
            ] == expected.log
            assert sum(meta.totals.types.values()) == len(expected.log)
            assert sum(meta.inherited.types.values()) == expected.own_start

    async def compare_digests(self) -> None:
        found = await self.store.sessions.digests(self.space, SessionFilter(), 1_000, None)
        assert found is not None
        shown = {
            digest.session.id: (
                digest.memory and (digest.memory.content, digest.memory.version, digest.memory.at_seq),
                digest.insight and (digest.insight.content, digest.insight.version),
            )
            for digest in found.digests
        }
        assert shown == {
            id: (expected.memory, expected.insight if expected.insight and expected.insight[0] is not None else None)
            for id, expected in self.model.sessions.items()
        }


COMMANDS = ["create", "create", "fork", "fork", "append", "append", "append", "move", "move", "ref", "unref"]
COMMANDS += ["archive", "restore", "delete", "memory", "insight", "consume"]
CHOICES = st.integers(0, 1_000)


def test_any_sequence_of_commands_leaves_the_store_like_the_model(opening: OpenStore) -> None:
    with asyncio.Runner() as runner:
        store = runner.run(opening())
        spaces = (f"space-{n}" for n in itertools.count())

        @settings(database=None)
        @given(st.lists(st.tuples(st.sampled_from(COMMANDS), CHOICES, CHOICES, CHOICES), min_size=1, max_size=30))
        def check(commands: list[tuple[str, int, int, int]]) -> None:
            async def play() -> None:
                playing = Play(store, next(spaces))
                for command in commands:
                    await playing.do(*command)
                await playing.compare()

            runner.run(play())

        try:
            check()
        finally:
            runner.run(store.close())
