"""The eight types of cards. A model checks the shape of what it knows and keeps all else, in the order given."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainValidator,
    PrivateAttr,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


def _scalar(value: object) -> object:
    if isinstance(value, dict | list):
        raise PydanticCustomError("scalar", "must be text or a number, is a {kind}", {"kind": _kind(value)})
    return value


def _number(value: object) -> object:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise PydanticCustomError("number", "must be a number, is a {kind}", {"kind": _kind(value)})


def _kind(value: object) -> str:
    return {dict: "mapping", bool: "boolean", str: "text"}.get(type(value), type(value).__name__)


Scalar = Annotated[str | int | float | bool | None, PlainValidator(_scalar)]
"""Text, or a number or boolean that a writer did not quote, which stays one."""
Number = Annotated[int | float | None, PlainValidator(_number)]


class Part(BaseModel):
    """A mapping in a payload. Keeps unknown fields and the order of fields."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow", frozen=True)

    _order: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _keep_order(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(value)
        if isinstance(value, Mapping):
            made._order = tuple(value)
        return made

    def payload(self) -> dict[str, Any]:
        """The fields that were given, in order, as JSON values."""
        fields = dict(self.model_extra or {})
        for name, field in type(self).model_fields.items():
            alias = field.alias or name
            # An unknown field that has the Python name of a known one counts as set too.
            if alias in self._order or (name in self.model_fields_set and name not in fields):
                fields[alias] = getattr(self, name)
        return {name: _plain(fields[name]) for name in dict.fromkeys((*self._order, *fields)) if name in fields}


def _plain(value: Any) -> Any:
    if isinstance(value, list) and any(isinstance(item, Part) for item in value):
        return [item.payload() if isinstance(item, Part) else item for item in value]
    return value


class Card(Part):
    """The fields of every card. Cards of the same type and `id` are versions of one card."""

    name: ClassVar[str]

    type: Scalar = None
    id: Scalar = None
    title: Scalar = None


class FormField(Part):
    """A field of a form, and the value entered so far."""

    id: Scalar = None
    label: Scalar = None
    type: Scalar = None
    current_value: Any = None


class Form(Card):
    """Values to fill in. The definition of its `form_id` says what the fields allow."""

    name = "Form"
    form_id: Scalar = None
    status: Scalar = None
    fields: list[FormField] | None = None
    submit_label: Scalar = None


class Parameter(Part):
    """A named value of a parameter set."""

    name: Scalar = None
    value_text: Scalar = None
    description: Scalar = None
    field_type: Scalar = None
    options: list[Any] | None = None


class ParameterSet(Card):
    """Named values."""

    name = "ParameterSet"
    items: list[Parameter] | None = None


class Table(Card):
    """Rows to view; `rows` may be the first few of `total_row_count`."""

    name = "Table"
    column_names: list[Scalar] | None = None
    rows: list[list[Any] | dict[str, Any]] | None = None
    total_row_count: Number = None
    max_preview_rows: Number = None


class ColumnMapping(Part):
    """The column of a file that provides a required one."""

    required_column: Scalar = None
    matched_column: Scalar = None


class ColumnMatch(Card):
    """Which columns of a file provide the required ones."""

    name = "ColumnMatch"
    required_columns: list[Any] | None = None
    preview_columns: list[Any] | None = None
    mappings: list[ColumnMapping] | None = None


class WorkflowStep(Part):
    """A step of a piece of work, and its status."""

    id: Scalar = None
    display_name: Scalar = None
    order: Number = None
    status: Scalar = None


class WorkflowStatus(Card):
    """The progress of a piece of work."""

    name = "WorkflowStatus"
    steps: list[WorkflowStep] | None = None


class KnowledgeBase(Card):
    """A title and free fields."""

    name = "KnowledgeBase"


class XyzLoadCard(Card):
    """A title and free fields."""

    name = "XyzLoadCard"


class GriddingParamCard(Card):
    """A title and free fields."""

    name = "GriddingParamCard"


TYPES: Mapping[str, type[Card]] = {
    kind.name: kind
    for kind in (
        Form,
        ParameterSet,
        Table,
        ColumnMatch,
        WorkflowStatus,
        KnowledgeBase,
        XyzLoadCard,
        GriddingParamCard,
    )
}
"""The models by the `type` of their payloads."""
