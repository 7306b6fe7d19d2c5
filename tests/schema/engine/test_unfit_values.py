"""Compiled readers against graphql-core's own executor, on values that may be missing, wrong, awaitable or errors."""

import asyncio
import inspect
from collections.abc import Generator
from enum import Enum
from typing import Any, cast

import graphql
import orjson
import pytest
import strawberry
from graphql import GraphQLSchema, parse, validate
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from strawberry.schema.config import StrawberryConfig

from schema.engine import execution
from schema.scalars import JSON, SCALARS, DateTime
from tests.schema.engine.random_queries import Query, queries
from tests.schema.engine.stock import stock_answer

VALUES = {"Boolean": [True, False]}


class Later:
    """An awaitable that any number of executions can await."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __await__(self) -> Generator[None, None, Any]:
        yield
        return self.value


@strawberry.enum
class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@strawberry.interface
class Animal:
    name: str
    age: int | None
    friends: list["Animal"]


@strawberry.type
class Cat(Animal):
    sizes: list[Size]
    weight: float
    toy: "Toy | None"


@strawberry.type
class Dog(Animal):
    id: strawberry.ID | None
    good: bool
    toys: list["Toy | None"]


@strawberry.type
class Toy:
    made_at: DateTime
    about: JSON | None
    tags: list[str]

    @strawberry.field
    def owner(self) -> Cat | None:
        return None

    @strawberry.field
    async def price(self) -> int:
        if self.tags == ["priceless"]:
            raise ValueError("priceless")
        return 1


@strawberry.type
class Zoo:
    @strawberry.field
    def animals(self, info: strawberry.Info) -> list[Animal]:
        return cast(list[Animal], info.context["animals"])

    @strawberry.field
    def cats(self, info: strawberry.Info) -> list[Cat | None] | None:
        return cast(list[Cat | None], [each for each in info.context["animals"] if not isinstance(each, Dog)])

    @strawberry.field
    def animal(self, info: strawberry.Info) -> Animal | None:
        return cast(Animal, info.context["animals"][0]) if info.context["animals"] else None


WRONG: list[Any] = [None, 7, "text", 2.5, float("nan"), 10**12, True, [], [None], ["x"], b"x", object, Later(None)]


def maybe(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly right values, also as awaitables; some that do not fit, and errors."""
    mistakes = st.sampled_from(WRONG) | st.just(LookupError("lost"))
    return st.integers(0, 29).flatmap(lambda n: mistakes if n == 29 else right.map(Later) if n == 28 else right)


TOYS = st.builds(
    Toy,
    made_at=maybe(st.sampled_from([0, -1, 1_700_000_000_000])),
    about=maybe(st.sampled_from([None, "{}", "[1]"])),
    tags=maybe(st.sampled_from([[], ["new"], ["priceless"]])),
)


def animals(friends: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Cats and dogs that have these friends."""
    common = {
        "name": maybe(st.sampled_from(["Tom", "Rex"])),
        "age": maybe(st.sampled_from([None, 3])),
        "friends": maybe(friends),
    }
    cats = st.builds(
        Cat,
        **common,
        sizes=maybe(st.lists(maybe(st.sampled_from(list(Size))), max_size=2)),
        weight=maybe(st.sampled_from([4, 4.5])),
        toy=maybe(st.none() | TOYS),
    )
    dogs = st.builds(
        Dog,
        **common,
        id=maybe(st.sampled_from([None, "d1"])),
        good=maybe(st.just(True)),
        toys=maybe(st.lists(maybe(st.none() | TOYS), max_size=3)),
    )
    return cats | dogs


ANIMALS = st.lists(maybe(animals(st.lists(animals(st.just([])), max_size=3))), max_size=5)
ZOO_CONFIG = StrawberryConfig(scalar_map=SCALARS)
STOCK_ZOO = cast(GraphQLSchema, cast(Any, strawberry.Schema(Zoo, types=[Cat, Dog], config=ZOO_CONFIG))._schema)


async def check(executor: type[execution.CompiledExecutor], query: Query, animals: list[Any]) -> None:
    """Both executors give the same answer."""
    context = {"animals": animals}
    found: Any = graphql.execute(
        STOCK_ZOO,
        parse(query.text),
        variable_values=query.variables,
        context_value=context,
        executor_class=executor,
    )
    result = await found if inspect.isawaitable(found) else found
    assert comparable(result) == comparable(await stock_answer(STOCK_ZOO, query, context))


@pytest.mark.usefixtures("always_compiled")
def test_any_values_are_answered_as_by_the_stock_executor() -> None:
    executor = execution.compiled_executor()

    @settings(max_examples=100, suppress_health_check=list(HealthCheck))
    @given(queries(STOCK_ZOO, VALUES), ANIMALS)
    def check_one(query: Query, animals: list[Any]) -> None:
        assume(not validate(STOCK_ZOO, parse(query.text)))
        runner.run(check(executor, query, animals))

    with asyncio.Runner() as runner:
        check_one()
    assert len(executor.readers) > 5


def toy(**values: Any) -> Toy:
    return Toy(**{"made_at": 0, "about": None, "tags": [], **values})


def cat(**values: Any) -> Cat:
    return Cat(**{"name": "Tom", "age": 3, "friends": [], "sizes": [], "weight": 4.0, "toy": None, **values})


@pytest.mark.parametrize(
    ("selection", "animals"),
    [
        ("animals { ... on Cat { weight name } }", [cat(weight=Later(1.5))]),
        ("animals { ... on Cat { weight name } }", [cat(weight="heavy"), cat(age=10**12)]),
        ("cats { age name }", [cat(), cat(age=10**12), cat()]),
        ("cats { toy { about madeAt } }", [cat(toy=toy(about=Later("{}")))]),
        ("cats { toy { about madeAt } }", [cat(toy=toy(about=LookupError("lost")))]),
        ("cats { __typename }", [cat(), None, LookupError("lost"), Later(cat())]),
        ("cats { toy { __typename } friends { __typename } }", [cat(toy=LookupError("lost")), cat(friends=[None])]),
    ],
)
@pytest.mark.usefixtures("always_compiled")
async def test_readers_leave_unfit_values_to_the_stock_executor(selection: str, animals: list[Any]) -> None:
    """Awaitables, exceptions and nulls that conversion alone does not notice."""
    await check(execution.compiled_executor(), Query(f"{{ {selection} }}", {}), animals)


def comparable(result: Any) -> tuple[bytes, list[str]]:
    """The data, keys in order, and the errors with their paths and positions in the document."""
    found = [f"{error.path} {error.locations} {error.message}" for error in result.errors or ()]
    return orjson.dumps(result.data), sorted(found)
