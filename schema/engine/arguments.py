"""Where in a document a value stands, as clients name it: `input.events[3].toolCall`."""

from collections.abc import Iterator

from graphql import DocumentNode, FieldNode, ListValueNode, Node, ObjectValueNode, Visitor, visit


def place_of(document: DocumentNode, wanted: Node) -> str | None:
    """The place of a value within its field's arguments; None for a node that is not in one."""
    finder = _Finder(wanted)
    visit(document, finder)
    return finder.found


class _Finder(Visitor):
    def __init__(self, wanted: Node) -> None:
        super().__init__()
        self._wanted = wanted
        self.found: str | None = None

    def enter_field(self, node: FieldNode, *_: object) -> None:
        for argument in node.arguments or ():
            for place, value in _walk(argument.name.value, argument.value):
                if value is self._wanted:
                    self.found = place


def _walk(place: str, value: Node) -> Iterator[tuple[str, Node]]:
    stack = [(place, value)]
    while stack:
        here, node = stack.pop()
        yield here, node
        if isinstance(node, ListValueNode):
            stack.extend((f"{here}[{index}]", item) for index, item in enumerate(node.values))
        elif isinstance(node, ObjectValueNode):
            for field in node.fields:
                stack.append((f"{here}.{field.name.value}", field))
                stack.append((f"{here}.{field.name.value}", field.value))
