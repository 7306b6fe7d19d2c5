"""Documents that are cheap to send and expensive to answer."""


def spreads(levels: int, times: int = 2, leaf: str = "viewer { space }") -> str:
    """Fragments within fragments, each spread several times: the last one is spread times ** levels times."""
    nested = (f"fragment f{level} on Query {{ {f'...f{level + 1} ' * times}}}" for level in range(levels))
    return f"{{ ...f0 }} {' '.join(nested)} fragment f{levels} on Query {{ {leaf} }}"


def deeper(levels: int, fields: int = 2) -> str:
    """Like `spreads`, with each level one node deeper."""
    nested = (
        f"fragment f{level} on Session {{ "
        + " ".join(f"a{index}: node {{ session {{ ...f{level + 1} }} }}" for index in range(fields))
        + " }"
        for level in range(levels)
    )
    return f'{{ session(id: "x") {{ ...f0 }} }} {" ".join(nested)} fragment f{levels} on Session {{ id }}'


def cycle(count: int) -> str:
    """Fragments, each of which spreads all of them."""
    names = [f"c{index}" for index in range(count)]
    everything = " ".join(f"...{name}" for name in names)
    return f"{{ ...c0 }} {' '.join(f'fragment {name} on Query {{ {everything} }}' for name in names)}"


def circular(levels: int) -> str:
    """Introspection of types of fields of types, and so on."""
    return f"{{ __schema {{ types {{ {'fields { type { ' * levels}name{' } }' * levels} }} }} }}"


ARGUMENTS = "__schema { types { fields { args { type { ofType { name } } } } } }"
TOO_COMPLEX: dict[str, tuple[str, str]] = {
    "fragments, 2^50": (spreads(50), "root fields"),
    "fragments, 2^100": (spreads(100), "nesting"),
    "fragments, 30^20": (spreads(20, 30), "root fields"),
    "fragments in fields, 2^15": (deeper(15), "depth"),
    "aliases": (f"{{ {' '.join(f'a{index}: __typename' for index in range(31))} }}", "aliases"),
    "10,000 aliases": (f"{{ {' '.join(f'a{index}: viewer {{ space }}' for index in range(10_000))} }}", "characters"),
    "aliases further down": (f"{{ viewer {{ {' '.join(f'a{index}: space' for index in range(31))} }} }}", "aliases"),
    "2,000 tokens": (f"{{ viewer {{ {'space ' * 2_000} }} }}", "tokens"),
    "overlapping fields": (f"{{ viewer {{ {'space ' * 1_990} }} }}", "comparisons of fields with one name"),
    "overlapping nodes": (
        f'{{ session(id: "x") {{ {"node { id label depth } " * 300} }} }}',
        "comparisons of fields with one name",
    ),
    "overlapping root fields": (f"{{ {'viewer { space } ' * 450} }}", "root fields"),
    "20,000 directives": (f"{{ viewer {'@a' * 20_000} {{ space }} }}", "tokens"),
    "directives at one place": (f"{{ viewer {'@a' * 5} {{ space }} }}", "directives at one place"),
    "directives": (f"{{ viewer {{ {'space @skip(if: true) ' * 51} }} }}", "directives"),
    "a deep list": (f"{{ sessions(ids: {'[' * 900}{']' * 900}) {{ id }} }}", "nesting"),
    "a list without end": (f"{{ sessions(ids: {'[' * 20_000}", "nesting"),
    "deep selections": (f"{{ {'roots { ' * 150} id {' }' * 150} }}", "nesting"),
    "selections within nothing": (f"{{ {'... { ' * 100} __typename {' }' * 100} }}", "nesting"),
    "13 deep": (f"{{ roots {{ {'parent { ' * 11} id {'} ' * 11} }} }}", "depth"),
    "introspection 21 deep": (f"{{ __schema {{ types {{ {'ofType { ' * 18} name {'} ' * 18} }} }} }}", "introspection"),
    "circular introspection": (circular(4), "nodes of introspection"),
    "deep circular introspection": (circular(20), "depth of introspection"),
    "introspection again and again": (
        f"{{ {' '.join(f'a{index}: {ARGUMENTS}' for index in range(30))} }}",
        "nodes of introspection",
    ),
    "comments": ("#\n" * 2_000 + "{ viewer { space } }", "comments"),
    "much of nothing": (" " * 200_000 + "{ viewer { space } }", "characters"),
}
"""Each with what it exceeds."""
INVALID = {
    "a cycle of fragments": cycle(22),
    "unknown fragments": f"{{ {' '.join(f'...x{index}' for index in range(900))} }}",
    "unused fragments": "{ viewer { space } }" + " fragment f on Query { viewer { space } }" * 180,
    "unknown fields": f"{{ viewer {{ {' '.join(f'spac{index}' for index in range(1_900))} }} }}",
    "one argument again and again": f"{{ viewer({'a: 1 ' * 600}) {{ space }} }}",
    "variables": f"query({'$a: Int ' * 480}) {{ viewer {{ space }} }}",
}
"""Refused by validation, quickly and with a short answer."""
