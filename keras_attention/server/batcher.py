"""Requests wait here and are answered together, without waiting for others.

While a batch is computed, requests queue up. The next batch is what has
queued up, oldest first, as far as it can be answered in one call. A request
that comes while nothing is computed is answered at once, by itself.
"""

import asyncio
import collections
import concurrent.futures
import dataclasses
import math
import time
from collections.abc import Callable

from keras_attention.server import errors
from keras_attention.server.errors import Code, RequestError

# The most requests that are refused in one turn of the event loop.
_REFUSALS_PER_TURN = 8


@dataclasses.dataclass(eq=False)
class Job:
    """A request that waits.

    Attributes:
        group: what requests of one call have in common, or None for a request
            that is answered by itself.
        payload: what the function that answers gets.
        num_rows: its rows.
        num_bytes: its bytes, for the limit of what waits.
        deadline: when the client stops waiting, by `time.monotonic`.
        answer: where the answer will be. A client that is gone cancels it.
        queued: when it came.
        started: when it was taken from the queue.
    """

    group: object
    payload: object
    num_rows: int
    num_bytes: int = 0
    deadline: float = math.inf
    answer: asyncio.Future = dataclasses.field(default=None)
    queued: float = dataclasses.field(default_factory=time.monotonic)
    started: float = math.nan

    @property
    def size(self) -> int:
        """Its rows, for the limits. A job without rows takes room, too."""
        return max(1, self.num_rows)


class Batcher:
    """A queue with a limit, and threads that empty it.

    Args:
        answer: function of a list of jobs to a list with the answer to each,
            or its exception. It is called in a thread.
        max_batch_size: the most rows of a call, but for one larger job.
        max_queued_rows: the most rows that wait.
        max_queued_bytes: the most bytes that wait.
        num_threads: how many calls are computed at the same time.

    Attributes:
        queued_rows, queued_bytes: what waits now.
    """

    def __init__(
        self,
        answer: Callable,
        max_batch_size: int,
        max_queued_rows: int,
        max_queued_bytes: int,
        num_threads: int,
    ):
        self._answer = answer
        self._max_batch_size = max_batch_size
        self._max_queued_rows = max_queued_rows
        self._max_queued_bytes = max_queued_bytes
        self._num_threads = num_threads
        self._queue = collections.deque()
        self._refusals = _Turns(_REFUSALS_PER_TURN)
        self._arrival = asyncio.Event()
        self._executor = concurrent.futures.ThreadPoolExecutor(
            num_threads, thread_name_prefix="batch"
        )
        self._workers = []
        self._calls = set()
        self.queued_rows = self.queued_bytes = 0

    @property
    def is_computing(self) -> bool:
        """Whether a call is computed: it cannot be interrupted."""
        return bool(self._calls)

    def start(self) -> None:
        """Begins to answer. It needs the event loop."""
        self._workers = [
            asyncio.create_task(self._work()) for _ in range(self._num_threads)
        ]

    async def stop(self) -> None:
        """Ends the queue. What still waits gets no answer.

        A call that is computed cannot be interrupted, and is not waited for.
        """
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def submit(self, job: Job):
        """Queues a job.

        Returns:
            What the function answered to it.

        Raises:
            RequestError: If too much waits, if the deadline is over, or what
                the function gave as the job's exception.
        """
        await self.check_room(job)
        # Nothing is awaited until the job counts: the room is still there.
        job.answer = asyncio.get_running_loop().create_future()
        self._queue.append(job)
        self.queued_rows += job.size
        self.queued_bytes += job.num_bytes
        self._arrival.set()
        seconds = None
        if job.deadline < math.inf:
            seconds = job.deadline - time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                return await job.answer
        except TimeoutError as error:
            raise _too_late() from error
        finally:
            if job.answer.cancelled():
                # Rows of a client that is gone take no room.
                self._drop_dead()

    async def check_room(self, job: Job | None = None) -> None:
        """Refuses what has no room.

        What has room does not wait. A refusal waits for its turn. Otherwise,
        hundreds of refusals would be written before the next batch begins.

        Args:
            job: what is to wait as well. None: a request whose size is not
                known yet. It has a row at least.

        Raises:
            RequestError: If so much cannot wait as well.
        """
        num_rows, num_bytes = (job.size, job.num_bytes) if job else (1, 0)
        if (
            self.queued_rows + num_rows <= self._max_queued_rows
            and self.queued_bytes + num_bytes <= self._max_queued_bytes
        ):
            return
        received = (
            f"{num_rows} rows of {num_bytes} bytes" if job else "one more"
        )
        message = (
            f"Expected at most {self._max_queued_rows} rows of "
            f"{self._max_queued_bytes} bytes that wait: try again later. "
            f"Received: {received}, where {self.queued_rows} rows of "
            f"{self.queued_bytes} bytes wait"
        )
        await self._refusals.wait()
        raise RequestError(Code.RESOURCE_EXHAUSTED, message)

    async def _work(self) -> None:
        while True:
            await self._arrival.wait()
            jobs = self._take()
            if not self._queue:
                self._arrival.clear()
            if not jobs:
                continue
            call = self._executor.submit(self._answers, jobs)
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
            answers = await asyncio.wrap_future(call)
            for job, answer in zip(jobs, answers, strict=True):
                if job.answer.done():
                    continue
                if isinstance(answer, Exception):
                    job.answer.set_exception(answer)
                else:
                    job.answer.set_result(answer)

    def _answers(self, jobs) -> list:
        try:
            return self._answer(jobs)
        except Exception as error:
            failed = RequestError(Code.INTERNAL, "The server failed")
            failed.__cause__ = error
            return [failed] * len(jobs)

    def _take(self) -> list[Job]:
        """The oldest job and all that can be answered with it, in order."""
        self._drop_dead()
        if not self._queue:
            return []
        first = self._queue.popleft()
        jobs, rest, size = [first], [], first.size
        while (
            first.group is not None
            and size < self._max_batch_size
            and self._queue
        ):
            job = self._queue.popleft()
            fits = size + job.size <= self._max_batch_size
            if job.group == first.group and fits:
                jobs.append(job)
                size += job.size
            else:
                rest.append(job)
        self._queue.extendleft(reversed(rest))
        self.queued_rows -= size
        self.queued_bytes -= sum(job.num_bytes for job in jobs)
        now = time.monotonic()
        for job in jobs:
            job.started = now
        return jobs

    def _drop_dead(self) -> None:
        """Forgets the jobs whose client is gone or stopped waiting."""
        now = time.monotonic()
        alive = []
        for job in self._queue:
            if not job.answer.done() and job.deadline <= now:
                job.answer.set_exception(_too_late())
            if not job.answer.done():
                alive.append(job)
        self._queue = collections.deque(alive)
        self.queued_rows = sum(job.size for job in alive)
        self.queued_bytes = sum(job.num_bytes for job in alive)


class _Turns:
    """Lets a few waiters go on in each turn of the event loop, oldest first.

    Args:
        most: the most of them in a turn.
    """

    def __init__(self, most: int):
        self._most = most
        self._waiting = collections.deque()

    async def wait(self) -> None:
        """Waits for a turn."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._let_go, loop)
        await turn

    def _let_go(self, loop) -> None:
        for _ in range(min(self._most, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():  # A waiter that was cancelled is done.
                turn.set_result(None)
        if self._waiting:
            loop.call_soon(self._let_go, loop)


def _too_late() -> errors.RequestError:
    return RequestError(
        Code.DEADLINE_EXCEEDED,
        "Expected an answer before the deadline. Received: none until then",
    )
