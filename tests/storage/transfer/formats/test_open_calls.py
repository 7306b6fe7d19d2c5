from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from storage.transfer.formats.shared.open_calls import CallLayer, CallSite, OpenCalls

IDS = st.sampled_from("abcd")
WORK = st.lists(st.tuples(st.sampled_from(["add", "add", "answer", "mark", "go on"]), IDS, st.integers(0, 20)))


class Plain:
    """A simple and slow implementation to compare with."""

    def __init__(self, calls: tuple[tuple[str, CallSite], ...] = ()) -> None:
        self.calls = deque(calls)

    def answer(self, id: str) -> CallSite | None:
        found = next((call for call in self.calls if call[0] == id), None)
        if found is None:
            return None
        self.calls.remove(found)
        return found[1]


@given(WORK)
def test_calls_are_answered_oldest_first_from_any_snapshot(work: list[tuple[str, str, int]]) -> None:
    calls, plain = OpenCalls(), Plain()
    marks: list[tuple[CallLayer, tuple[tuple[str, CallSite], ...]]] = [(calls.snapshot(), ())]
    for number, (what, id, index) in enumerate(work):
        match what:
            case "add":
                calls.add(id, (None, str(number)))
                plain.calls.append((id, (None, str(number))))
            case "answer":
                assert calls.answer(id) == plain.answer(id)
            case "mark":
                marks.append((calls.snapshot(), tuple(plain.calls)))
            case _:
                mark, then = marks[index % len(marks)]
                calls, plain = OpenCalls(mark), Plain(then)
        oldest = calls.oldest()
        assert (oldest is None) == (not plain.calls)
    while plain.calls:
        id, location = plain.calls[0]
        assert calls.answer(id) == location
        plain.calls.popleft()
    assert calls.oldest() is None


def test_the_oldest_call_is_found_in_any_layer() -> None:
    calls = OpenCalls()
    for number in range(100):
        calls.add(f"c{number}", ("t", None))
        calls.snapshot()
    for number in range(100):
        assert calls.oldest() == f"c{number}"
        assert calls.answer(f"c{number}") == ("t", None)
        calls.snapshot()


def test_many_calls_without_a_result_are_in_few_layers() -> None:
    calls = OpenCalls()
    for number in range(10_000):
        calls.add(f"c{number}", (None, None))
        calls.snapshot()
    layer, depth = calls.snapshot().below, 0
    while layer is not None:
        layer, depth = layer.below, depth + 1
    assert 0 < depth < 20
