"""Several trainings at once, each in a process of its own that ends with this one."""

import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
END_S = 30.0
"""Seconds in which a process that is told to end takes its network down."""


def side_by_side(
    jobs: Sequence[Job],
    count: int,
    work: Callable[[Job], Result],
    without: Callable[[Job, int | None], Result],
) -> list[Result]:
    """Returns what `work` gives for each job, in their order.

    Args:
        jobs: what to do.
        count: how many at once; one does them here, one after the other.
        work: does a job.
        without: says what stands for the result of a process that ended without one, given its exit code.
    """
    if count == 1:
        return [work(job) for job in jobs]
    results: dict[int, Result] = {}
    waiting = list(enumerate(jobs))
    running: dict[Connection, tuple[int, ForkProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < count:
                number, job = waiting.pop(0)
                connection, process = _start(work, job)
                running[connection] = (number, process)
            for ended in wait(list(running)):
                assert isinstance(ended, Connection)
                number, process = running.pop(ended)
                try:
                    results[number] = ended.recv()
                except EOFError:
                    process.join(END_S)
                    results[number] = without(jobs[number], process.exitcode)
                process.join(END_S)
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join(END_S)
    return [results[number] for number in range(len(jobs))]


def _start(work: Callable[[Job], Result], job: Job) -> tuple[Connection, ForkProcess]:
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_work, args=(sending, work, job))
    process.start()
    sending.close()
    return receiving, process


def _work(connection: Connection, work: Callable[[Job], Result], job: Job) -> None:
    connection.send(work(job))
    connection.close()
