"""Paths of values within a field's arguments, as clients write them: `input.events[3].toolCall`."""

from collections.abc import Iterator

from graphql import DocumentNode, FieldNode, ListValueNode, Node, ObjectValueNode, Visitor, visit


def argument_path(document: DocumentNode, wanted: Node) -> str | None:
    """The path of a value node within its field's arguments; None for a node outside of arguments."""
    finder = _Finder(wanted)
    visit(document, finder)
    return finder.path


class _Finder(Visitor):
    def __init__(self, wanted: Node) -> None:
        super().__init__()
        self._wanted = wanted
        self.path: str | None = None

    def enter_field(self, node: FieldNode, *_: object) -> None:
        for argument in node.arguments or ():
            for path, value in _walk(argument.name.value, argument.value):
                if value is self._wanted:
                    self.path = path


def _walk(path: str, value: Node) -> Iterator[tuple[str, Node]]:
    """Every node of an argument's value, with its path."""
    stack = [(path, value)]
    while stack:
        path, node = stack.pop()
        yield path, node
        if isinstance(node, ListValueNode):
            stack.extend((f"{path}[{index}]", item) for index, item in enumerate(node.values))
        elif isinstance(node, ObjectValueNode):
            for field in node.fields:
                stack.append((f"{path}.{field.name.value}", field))
                stack.append((f"{path}.{field.name.value}", field.value))
