"""The queue: what is answered together, refused and forgotten."""

import asyncio
import threading
import time

import pytest

from keras_attention.server import batcher
from keras_attention.server.errors import Code, RequestError


def job(payload, group="g", num_rows=1, **options):
    return batcher.Job(group, payload, num_rows, **options)


class Slow:
    """Answers with the payloads when it is let, and keeps the calls."""

    def __init__(self):
        self.calls = []
        self.may_go = threading.Event()

    def __call__(self, jobs):
        self.calls.append([one.payload for one in jobs])
        self.may_go.wait()
        return [one.payload for one in jobs]


def with_batcher(test, answer, max_batch_size=3, max_queued_rows=8):
    async def main():
        queue = batcher.Batcher(answer, max_batch_size, max_queued_rows, 100, 1)
        queue.start()
        try:
            return await test(queue)
        finally:
            if isinstance(answer, Slow):
                answer.may_go.set()
            await queue.stop()

    return asyncio.run(main())


async def begun(queue, first):
    """A job that is computed, so that others wait."""
    task = asyncio.create_task(queue.submit(first))
    while queue.queued_rows or not task.get_coro().cr_await:
        await asyncio.sleep(0.001)
    return task


def test_a_batch_is_what_has_queued_up():
    slow = Slow()

    async def test(queue):
        tasks = [await begun(queue, job("first"))]
        await asyncio.sleep(0.01)
        tasks += [
            asyncio.create_task(queue.submit(job(n, group)))
            for n, group in enumerate(["a", "b", "a", "a", "a", None, "b"])
        ]
        await asyncio.sleep(0.01)
        assert queue.queued_rows == 7
        slow.may_go.set()
        assert await asyncio.gather(*tasks) == ["first", *range(7)]

    with_batcher(test, slow)
    assert slow.calls == [["first"], [0, 2, 3], [1, 6], [4], [5]]


def test_rows_count_and_a_large_job_goes_by_itself():
    slow = Slow()

    async def test(queue):
        tasks = [await begun(queue, job("first"))]
        await asyncio.sleep(0.01)
        sizes = {"a": 2, "b": 2, "c": 1, "large": 3}
        tasks += [
            asyncio.create_task(queue.submit(job(name, num_rows=size)))
            for name, size in sizes.items()
        ]
        await asyncio.sleep(0.01)
        slow.may_go.set()
        await asyncio.gather(*tasks)

    with_batcher(test, slow, max_batch_size=3)
    assert slow.calls == [["first"], ["a", "c"], ["b"], ["large"]]


def test_a_full_queue_refuses_and_dead_jobs_take_no_room():
    slow = Slow()

    async def test(queue):
        first = await begun(queue, job("first"))
        await asyncio.sleep(0.01)
        waiting = asyncio.create_task(queue.submit(job("w", num_rows=8)))
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError) as refused:
            await queue.submit(job("more"))
        assert refused.value.code == Code.RESOURCE_EXHAUSTED
        waiting.cancel()
        await asyncio.sleep(0.01)
        assert queue.queued_rows == 0
        next_one = asyncio.create_task(queue.submit(job("next", num_rows=8)))
        await asyncio.sleep(0.01)
        slow.may_go.set()
        assert await asyncio.gather(first, next_one) == ["first", "next"]

    with_batcher(test, slow)
    assert slow.calls == [["first"], ["next"]]


@pytest.mark.parametrize(
    "refused, received",
    [
        (job("x", num_rows=9), "9 rows of 0 bytes"),
        (job("x", num_bytes=71), "1 rows of 71 bytes"),
        # Before its size is known.
        (None, "one more"),
    ],
)
def test_a_refusal_says_what_was_refused(refused, received):
    async def test(queue):
        queue.queued_rows, queue.queued_bytes = (2, 30) if refused else (8, 30)
        with pytest.raises(RequestError) as error:
            await queue.check_room(refused)
        assert error.value.code == Code.RESOURCE_EXHAUSTED
        assert error.value.message == (
            f"Expected at most 8 rows of 100 bytes that wait: try again later. "
            f"Received: {received}, where {queue.queued_rows} rows of "
            "30 bytes wait"
        )

    with_batcher(test, Slow())


def test_few_are_refused_in_a_turn_of_the_event_loop():
    refused, num_each_turn = [], []

    async def ask(queue, number):
        with pytest.raises(RequestError):
            await queue.submit(job(number, num_rows=9))
        refused.append(number)

    async def test(queue):
        asked = [asyncio.create_task(ask(queue, n)) for n in range(101)]
        await asyncio.sleep(0)
        # What has room does not wait.
        await queue.check_room(job("small"))
        assert not refused
        # A cancelled waiter does not stop the turns of the others.
        asked[50].cancel()
        for _ in range(20):
            num_before = len(refused)
            await asyncio.sleep(0)
            num_each_turn.append(len(refused) - num_before)
        # The turns begin again.
        async with asyncio.timeout(20):
            await ask(queue, 101)

    with_batcher(test, Slow())
    assert refused == [n for n in range(102) if n != 50]
    assert max(num_each_turn) == 8


def test_a_deadline_ends_the_waiting_and_the_job():
    slow = Slow()

    async def test(queue):
        first = await begun(queue, job("first"))
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError) as late:
            await queue.submit(job("late", deadline=time.monotonic() + 0.02))
        assert late.value.code == Code.DEADLINE_EXCEEDED
        assert queue.queued_rows == 0
        with pytest.raises(RequestError):
            await queue.submit(job("later", deadline=time.monotonic() - 1))
        slow.may_go.set()
        await first

    with_batcher(test, slow)
    assert slow.calls == [["first"]]


def test_an_exception_is_the_answer_of_its_job_alone():
    async def test(queue):
        return await asyncio.gather(
            queue.submit(job("good", None)),
            queue.submit(job(RequestError(Code.NOT_FOUND, "bad"), None)),
            queue.submit(job("crash", None)),
            return_exceptions=True,
        )

    def answer(jobs):
        if jobs[0].payload == "crash":
            raise ZeroDivisionError
        return [one.payload for one in jobs]

    good, bad, crash = with_batcher(test, answer)
    assert good == "good"
    assert bad.code == Code.NOT_FOUND
    assert crash.code == Code.INTERNAL
    assert isinstance(crash.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("sizes", [{"num_rows": 0}, {"num_bytes": 30}])
def test_jobs_without_rows_and_large_ones_are_bounded(sizes):
    slow = Slow()

    async def test(queue):
        first = await begun(queue, job("first"))
        await asyncio.sleep(0.01)
        asked = [
            asyncio.create_task(queue.submit(job(number, **sizes)))
            for number in range(12)
        ]
        await asyncio.sleep(0.01)
        slow.may_go.set()
        answers = await asyncio.gather(first, *asked, return_exceptions=True)
        return sum(isinstance(answer, RequestError) for answer in answers)

    # 8 rows and 100 bytes may wait.
    assert with_batcher(test, slow) == (4 if "num_rows" in sizes else 9)


def test_the_end_does_not_wait_for_a_call():
    slow = Slow()

    async def main():
        queue = batcher.Batcher(slow, 3, 8, 100, 1)
        queue.start()
        task = await begun(queue, job("first"))
        await asyncio.sleep(0.01)
        await asyncio.wait_for(queue.stop(), 5)
        assert queue.is_computing
        task.cancel()
        slow.may_go.set()

    asyncio.run(main())
