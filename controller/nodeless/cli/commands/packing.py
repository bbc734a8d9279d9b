"""`nodeless solve`: one packing problem from a file, its answer on stdout."""

import gc
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated, Any

import typer

from nodeless.api.errors import InvalidObject
from nodeless.api.packing_problem import Problem, read_catalog, read_problem
from nodeless.cli.bounded_files import UnreadableFileError, read_json
from nodeless.cli.commands.output import DOCUMENTS, TABLE, AsJson, OutputOption, format_of, write_document
from nodeless.cli.folding import echo_folded
from nodeless.cli.progress import working
from nodeless.explain.packing_answer import packing_answer
from nodeless.explain.words import count
from nodeless.model.packing import LOWEST_PRICE, packing_defect
from nodeless.model.plan import FewerNodes

packing = typer.Typer()


class UnreadableProblem(Exception):
    """A file that is no problem, and why."""


@packing.command(name="solve", rich_help_panel="Plans")
def solve_problem(
    problem: Annotated[Path, typer.Option(help="The problem as JSON, plain or gzipped.")],
    improve: Annotated[
        float,
        typer.Option(
            help="Seconds of work to find a plan that is cheaper than the first-fit plan. 0 turns this off."
        ),
    ] = 1.0,
    policy: Annotated[
        str, typer.Option("--packing", help="How to choose nodes: lowest-price or fewest-nodes.")
    ] = LOWEST_PRICE,
    output: OutputOption = TABLE,
    as_json: AsJson = False,
) -> None:
    """Solve the packing problem in a file: nodes to launch, price, lower bound. Exit code 1: pods remain."""
    output = format_of(output, as_json=as_json)
    if defect := packing_defect(policy):
        _fail(f"--packing {policy!r} {defect}")
    if not 0 <= improve < float("inf"):
        _fail(f"--improve {improve} is not a time; hint: seconds, 0 or more")
    try:
        with working("reading the problem"):
            given = load_problem(problem)
        with working("solving"):
            answer = answer_to(given, improve=improve, packing=policy)
    except UnreadableProblem as error:
        _fail(str(error))
    for fault in answer["faults"]:
        print(f"nodeless: note: {fault}", file=sys.stderr)  # noqa: T201 - stdout is for the answer
    if output in DOCUMENTS:
        write_document("PackingAnswer", answer, output)
    else:
        echo_folded(_line(answer))
    if answer["unscheduledPods"]:
        raise typer.Exit(1)


def load_problem(path: Path) -> Problem:
    """The problem of a file, with the catalog that it names beside it.

    Raises:
        UnreadableProblem: a file cannot be read, or does not hold what it should.
    """
    document = _json(path)
    try:
        name = document.get("catalogue") if isinstance(document, dict) else None
        types = read_catalog(_json(path.parent / name)) if isinstance(name, str) else ()
        # All that is made here stays: looking for garbage among a million pods costs more than reading them.
        gc.disable()
        return read_problem(document, types)
    except InvalidObject as error:
        raise UnreadableProblem(f"{path}: {error}") from None
    finally:
        gc.enable()


def answer_to(problem: Problem, *, improve: float, packing: str = LOWEST_PRICE) -> dict[str, Any]:
    """The answer, with what `solve` took: seconds by the clock and of the processor, and peak memory.

    All that a pass does with a snapshot is counted, looking through its pods included; reading the file
    before it and writing the answer after it are not.
    """
    # Imported here: the other commands do without NumPy and HiGHS.
    from nodeless.scheduling import Policy, solve  # noqa: PLC0415

    policy = Policy(packing=packing, time_box=improve, ignore_preferences=problem.ignore_preferences)
    # What reading the file left behind is no part of the figures.
    gc.collect()
    gc.freeze()
    wall, cpu = perf_counter(), process_time()
    plan = solve(problem.snapshot, problem.catalog, policy)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    return packing_answer(problem.name, problem.pods, plan) | {
        "solveSeconds": round(wall, 6),
        "solveCpuSeconds": round(cpu, 6),
        "maxRssMiB": round(_peak_memory() / 1024, 1),
    }


def _peak_memory() -> int:
    """The most memory that this process has held, in KiB.

    Not `ru_maxrss` where Linux tells better: a started process inherits the peak of the one that started it.
    """
    try:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _json(path: Path) -> Any:
    try:
        return read_json(str(path), "hint: a problem is JSON, plain or gzipped")
    except UnreadableFileError as error:
        raise UnreadableProblem(str(error)) from None


def _line(answer: dict[str, Any]) -> str:
    bound = answer["lowerBound"]
    proof = "" if bound is None else f", at least {bound:.4f} (gap {100 * answer['gap']:.1f} %)"
    if answer["provedCheapest"]:
        proof = ", proved cheapest"
    fewer = answer["fewerNodes"]
    if fewer and fewer["perHour"] > 0:
        proof += f"; {FewerNodes(fewer['nodes'], fewer['perHour'])}"
    return (
        f"{answer['problem'] or 'problem'}: {count(answer['newNodeCount'], 'node')} for "
        f"{answer['scheduledNew']} of {count(answer['pods'], 'pod')}, "
        f"{answer['totalHourlyPrice']:.4f} USD/h{proof}; "
        f"{answer['scheduledExisting']} on existing nodes, {answer['unscheduledPods']} without a place; "
        f"{answer['solveSeconds']:.3f} s"
    )


def _fail(message: str) -> None:
    print(f"nodeless: {message}", file=sys.stderr)  # noqa: T201 - the last line of the process
    raise typer.Exit(2)
