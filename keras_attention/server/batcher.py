"""Requests wait here and are answered together, without waiting for others.

While a batch is computed, requests queue up. The next batch is what has
queued up, oldest first, as far as it can be answered in one call. A request
that comes while nothing is computed is answered at once, by itself.

Each model has lines of its own, one for requests of about one size. The line
that had the fewest rows answered goes next, as in fair queueing (Demers et
al., 1989). So whoever sends large requests waits for itself: a small request
goes before them, to whatever model.
"""

import asyncio
import concurrent.futures
import dataclasses
import math
import time
from collections.abc import Callable

from keras_attention.server.errors import Code, RequestError

# About so many requests are refused in one turn of the event loop.
_REFUSALS_PER_TURN = 8


# Two jobs that are alike are two: each has its own client.
@dataclasses.dataclass(eq=False)
class Job:
    """A request that waits.

    Attributes:
        model: the name of the model that it waits for.
        group: what requests of one call have in common, or None for a request
            that is answered by itself.
        payload: what the function that answers gets.
        num_rows: its rows.
        num_bytes: its bytes, for the limit of what waits.
        deadline: when the client stops waiting, by `time.monotonic`.
        whole: the rows of the request that it is a part of; 0 if it is the
            whole.
        result: where the answer will be. A client that is gone cancels it.
        queued: when it came.
        started: when it was taken from the queue.
    """

    model: str
    group: object
    payload: object
    num_rows: int
    num_bytes: int = 0
    deadline: float = math.inf
    whole: int = 0
    result: asyncio.Future = dataclasses.field(default=None)
    queued: float = dataclasses.field(default_factory=time.monotonic)
    started: float = math.nan

    @property
    def size(self) -> int:
        """Its rows, for the limits. A job without rows takes room, too."""
        return max(1, self.num_rows)

    @property
    def size_class(self) -> int:
        """0 for a row, 1 for up to 8, 2 for up to 64, 3 for up to 512, ..."""
        # A part waits with requests as large as its whole, or a large request
        # would pass for many small ones.
        size = max(self.size, self.whole)
        return math.ceil((size - 1).bit_length() / 3)


class _Line:
    """The jobs of one model and of one size class, oldest first.

    Attributes:
        jobs: those that wait.
        num_rows, num_bytes: theirs.
        num_answered: the rows that had their turn. A line that was empty does
            not catch up: it begins where the others are.
    """

    def __init__(self):
        self.num_answered = 0
        self.keep([])

    def append(self, job: Job) -> None:
        """Adds a job."""
        self.jobs.append(job)
        self.num_rows += job.size
        self.num_bytes += job.num_bytes

    def keep(self, jobs: list[Job]) -> None:
        """Forgets all but these jobs."""
        self.jobs = jobs
        self.num_rows = sum(job.size for job in jobs)
        self.num_bytes = sum(job.num_bytes for job in jobs)


class Batcher:
    """Lines with a limit, and threads that empty them.

    Args:
        compute: function of a list of jobs to a list with the answer to each,
            or its exception. It is called in a thread.
        max_batch_size: the most rows of a call, but for one larger job.
        max_queued_rows: the most rows that wait for a model, without those of
            larger requests.
        max_queued_bytes: the most bytes, in the same way.
        num_threads: how many calls are computed at the same time.
    """

    def __init__(
        self,
        compute: Callable,
        max_batch_size: int,
        max_queued_rows: int,
        max_queued_bytes: int,
        num_threads: int,
    ):
        self._compute = compute
        self._max_batch_size = max_batch_size
        self._max_queued_rows = max_queued_rows
        self._max_queued_bytes = max_queued_bytes
        self._num_threads = num_threads
        self._lines = {}  # (model, size class) -> _Line
        # What the line of the last turn had been given before that turn.
        self._num_answered = 0
        self._refusals = asyncio.Semaphore(_REFUSALS_PER_TURN)
        self._arrival = asyncio.Event()
        self._executor = concurrent.futures.ThreadPoolExecutor(
            num_threads, thread_name_prefix="batch"
        )
        self._workers = []
        self._calls = set()

    @property
    def queued_rows(self) -> int:
        """The rows that wait now."""
        return sum(line.num_rows for line in self._lines.values())

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

    async def submit(self, *jobs: Job) -> list:
        """Queues the parts of a request, all of them or none.

        Returns:
            What the function answered to each.

        Raises:
            RequestError: If too much waits, if the deadline is over, or what
                the function gave as a part's exception.
        """
        await self.check_room(
            jobs[0].model,
            sum(job.size for job in jobs),
            sum(job.num_bytes for job in jobs),
            jobs[0].size_class,
        )
        # Nothing is awaited until the jobs count: the room is still there.
        for job in jobs:
            job.result = asyncio.get_running_loop().create_future()
            self._append(job)
        self._arrival.set()
        seconds = None
        if jobs[0].deadline < math.inf:
            seconds = jobs[0].deadline - time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.gather(*(job.result for job in jobs))
        except TimeoutError as error:
            raise _too_late() from error
        finally:
            for job in jobs:
                # One part has failed: the others are of no use.
                job.result.cancel()
            if any(job.result.cancelled() for job in jobs):
                # Rows of a client that is gone take no room.
                self._drop_dead()

    async def check_room(
        self,
        model: str,
        num_rows: int = 1,
        num_bytes: int = 0,
        size_class: int = 0,
    ) -> None:
        """Refuses a request that has no room.

        Larger jobs do not count, so that they never crowd out smaller ones.
        What has room does not wait. A refusal waits for its turn. Otherwise,
        hundreds of refusals would be written before the next batch begins.

        Args:
            model: the name of the model that it would wait for.
            num_rows, num_bytes, size_class: those of its jobs together. By
                default the least, for a request that is not read yet.

        Raises:
            RequestError: If it has no room.
        """
        before = [
            line
            for (name, other_class), line in self._lines.items()
            if name == model and other_class <= size_class
        ]
        rows_before = sum(line.num_rows for line in before)
        bytes_before = sum(line.num_bytes for line in before)
        if (
            rows_before + num_rows <= self._max_queued_rows
            and bytes_before + num_bytes <= self._max_queued_bytes
        ):
            return
        async with self._refusals:
            await asyncio.sleep(0)
        raise RequestError(
            Code.RESOURCE_EXHAUSTED,
            f"{model} is busy: {rows_before} rows wait for it, and "
            f"{num_rows} more have no room. Try again in a second.",
        )

    def _append(self, job: Job) -> None:
        key = job.model, job.size_class
        if key not in self._lines:
            # Models come and go. A line that is not ahead has no memory.
            self._lines = {
                key: line
                for key, line in self._lines.items()
                if line.jobs or line.num_answered > self._num_answered
            }
            self._lines[key] = _Line()
        line = self._lines[key]
        if not line.jobs:
            line.num_answered = max(line.num_answered, self._num_answered)
        line.append(job)

    async def _work(self) -> None:
        while True:
            await self._arrival.wait()
            jobs = self._take()
            if not jobs:
                # Nothing is awaited since `_take`: no arrival is missed.
                self._arrival.clear()
                continue
            # TensorFlow computes outside of Python's lock: meanwhile, the loop
            # reads the requests that make the next batch.
            call = self._executor.submit(self._compute, jobs)
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
            try:
                results = await asyncio.wrap_future(call)
            except Exception as error:
                failed = RequestError(Code.INTERNAL, "The server failed")
                failed.__cause__ = error
                results = [failed] * len(jobs)
            for job, result in zip(jobs, results, strict=True):
                # Its client is gone, or its deadline is over.
                if job.result.done():
                    continue
                if isinstance(result, Exception):
                    job.result.set_exception(result)
                else:
                    job.result.set_result(result)

    def _take(self) -> list[Job]:
        """The oldest job of the line whose turn it is, and what fits to it."""
        self._drop_dead()
        waiting = [
            (line.num_answered, size_class, model)
            for (model, size_class), line in self._lines.items()
            if line.jobs
        ]
        if not waiting:
            return []
        # Among lines that had the same, that of the smaller requests.
        self._num_answered, size_class, model = min(waiting)
        # A batch has room for other sizes, too.
        lines = [self._lines[model, size_class]] + [
            line
            for key, line in sorted(self._lines.items())
            if key[0] == model and key[1] != size_class
        ]
        # The oldest goes, however large it is: otherwise it would never go.
        first = lines[0].jobs[0]
        batch, size = [first], first.size
        for job in (job for line in lines for job in line.jobs):
            is_alike = job.group is not None and job.group == first.group
            fits = size + job.size <= self._max_batch_size
            if job is not first and is_alike and fits:
                batch.append(job)
                size += job.size
        for line in lines:
            taken = {*line.jobs} & {*batch}
            line.keep([job for job in line.jobs if job not in taken])
            line.num_answered += sum(job.size for job in taken)
        now = time.monotonic()
        for job in batch:
            job.started = now
        return batch

    def _drop_dead(self) -> None:
        """Forgets the jobs whose client is gone or stopped waiting."""
        now = time.monotonic()
        for line in self._lines.values():
            for job in line.jobs:
                if not job.result.done() and job.deadline <= now:
                    job.result.set_exception(_too_late())
            line.keep([job for job in line.jobs if not job.result.done()])


def _too_late() -> RequestError:
    return RequestError(
        Code.DEADLINE_EXCEEDED,
        "The deadline is over, and there is no answer yet.",
    )
