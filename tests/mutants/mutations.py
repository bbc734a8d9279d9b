"""Every small change of a source file that makes it mean something else.

Annotations, docstrings, texts for people (f-strings, and strings with a space), logging and `raise` are left
alone: what they say is not what the code does.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
#: Calls whose arguments are told to people, or to types only.
_TOLD = frozenset(
    ("debug", "info", "warning", "error", "exception", "cast", "TypeVar", "field", "dataclass", "Field")
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change.

    Attributes:
        line: Where it begins, from 1.
        column: In bytes, from 0.
        before: What stood there.
        after: What stands there now.
        source: The whole source with it.
    """

    line: int
    column: int
    before: str
    after: str
    source: str


@dataclass(frozen=True, slots=True)
class _Change:
    begin: tuple[int, int]
    end: tuple[int, int]
    after: str


def mutants(source: str) -> list[Mutant]:
    """All mutants of a source, in the order of their places; each is a source that can be compiled."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()
    found = []
    for change in sorted(set(_changes(ast.parse(source))), key=lambda one: (one.begin, one.end, one.after)):
        begin = starts[change.begin[0] - 1] + change.begin[1]
        end = starts[change.end[0] - 1] + change.end[1]
        changed = (raw[:begin] + change.after.encode() + raw[end:]).decode()
        if _compiles(changed):
            found.append(Mutant(*change.begin, raw[begin:end].decode(), change.after, changed))
    return found


def _compiles(source: str) -> bool:
    try:
        compile(source, "<mutant>", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _changes(tree: ast.Module) -> Iterator[_Change]:
    for node in _code(tree):
        for kind, changes in _KINDS.items():
            if isinstance(node, kind):
                yield from changes(node)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without what only people and types read."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_told(child):
                yield from _code(child)


def _is_told(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Assert():
            return True
        case ast.Expr(value=value):
            return isinstance(value, ast.Constant) or _is_told(value)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in _TOLD
    return False


def _span(node: ast.expr | ast.stmt | ast.keyword) -> tuple[tuple[int, int], tuple[int, int]]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _instead(node: ast.expr | ast.stmt | ast.keyword, after: str) -> _Change:
    return _Change(*_span(node), after)


def _of_compare(node: ast.Compare) -> Iterator[_Change]:
    left = node.left
    for operator, right in zip(node.ops, node.comparators, strict=True):
        after = _COMPARISONS.get(type(operator))
        if after is not None:
            yield _Change(_span(left)[1], _span(right)[0], f" {after} ")
        left = right


def _of_bool(node: ast.BoolOp) -> Iterator[_Change]:
    other = "or" if isinstance(node.op, ast.And) else "and"
    for left, right in zip(node.values, node.values[1:], strict=False):
        yield _Change(_span(left)[1], _span(right)[0], f" {other} ")


def _of_not(node: ast.UnaryOp) -> Iterator[_Change]:
    if isinstance(node.op, ast.Not):
        yield _instead(node, ast.unparse(node.operand))


def _of_operator(node: ast.BinOp) -> Iterator[_Change]:
    after = _OPERATORS.get(type(node.op))
    if after is not None:
        yield _Change(_span(node.left)[1], _span(node.right)[0], f" {after} ")


def _of_constant(node: ast.Constant) -> Iterator[_Change]:
    match node.value:
        case True | False:
            yield _instead(node, str(not node.value))
        case int() | float():
            yield _instead(node, f"({node.value!r} + 1)")
        case str() as text if text and " " not in text:
            yield _instead(node, repr(f"{text}x"))


def _of_condition(node: ast.If | ast.IfExp | ast.While) -> Iterator[_Change]:
    yield _instead(node.test, f"(not ({ast.unparse(node.test)}))")


def _of_call(node: ast.Call) -> Iterator[_Change]:
    """A keyword argument that is not passed on."""
    for keyword in node.keywords:
        if keyword.arg is not None and len(node.keywords) + len(node.args) > 1:
            before = [*node.args, *(each for each in node.keywords if each is not keyword)]
            after = [ast.unparse(each) for each in before]
            yield _instead(node, f"{ast.unparse(node.func)}({', '.join(after)})")


def _of_dict(node: ast.Dict) -> Iterator[_Change]:
    """An entry that is missing."""
    for index in range(len(node.values)):
        keys, values = [*node.keys], [*node.values]
        del keys[index], values[index]
        yield _instead(node, ast.unparse(ast.Dict(keys, values)))


def _of_sequence(node: ast.List | ast.Tuple | ast.Set) -> Iterator[_Change]:
    """An element that is missing."""
    if isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and len(node.elts) > 1:
        for index in range(len(node.elts)):
            left = [each for at, each in enumerate(node.elts) if at != index]
            yield _instead(node, ast.unparse(type(node)(elts=left)))


def _of_statement(node: ast.Expr | ast.AugAssign) -> Iterator[_Change]:
    """Something that is not done."""
    yield _instead(node, "pass")


def _of_return(node: ast.Return) -> Iterator[_Change]:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield _instead(node, "return None")


_KINDS: dict[type[ast.AST], Callable[..., Iterator[_Change]]] = {
    ast.Compare: _of_compare,
    ast.BoolOp: _of_bool,
    ast.UnaryOp: _of_not,
    ast.BinOp: _of_operator,
    ast.Constant: _of_constant,
    ast.If: _of_condition,
    ast.IfExp: _of_condition,
    ast.While: _of_condition,
    ast.Call: _of_call,
    ast.Dict: _of_dict,
    ast.List: _of_sequence,
    ast.Tuple: _of_sequence,
    ast.Set: _of_sequence,
    ast.Expr: _of_statement,
    ast.AugAssign: _of_statement,
    ast.Return: _of_return,
}
