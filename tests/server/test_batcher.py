"""The queue: what is answered together, refused and forgotten."""

import asyncio
import threading
import time

import pytest

from keras_attention.server import batcher
from keras_attention.server.errors import Code, RequestError


def job(payload, group="g", num_rows=1, model="m", **options):
    return batcher.Job(model, group, payload, num_rows, **options)


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
        assert await asyncio.gather(*tasks) == [
            [n] for n in ("first", *range(7))
        ]

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
            await queue.submit(job("more", num_rows=2))
        assert refused.value.code == Code.RESOURCE_EXHAUSTED
        waiting.cancel()
        await asyncio.sleep(0.01)
        assert queue.queued_rows == 0
        next_one = asyncio.create_task(queue.submit(job("next", num_rows=8)))
        await asyncio.sleep(0.01)
        slow.may_go.set()
        assert await asyncio.gather(first, next_one) == [["first"], ["next"]]

    with_batcher(test, slow)
    assert slow.calls == [["first"], ["next"]]


def test_a_refusal_says_how_much_waits():
    slow = Slow()

    async def test(queue):
        first = await begun(queue, job("first"))
        waiting = [
            asyncio.create_task(queue.submit(job(n, num_rows=2)))
            for n in range(4)
        ]
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError) as refused:
            await queue.submit(job("more", num_rows=3))
        slow.may_go.set()
        await asyncio.gather(first, *waiting)
        return refused.value

    error = with_batcher(test, slow)
    assert error.code == Code.RESOURCE_EXHAUSTED
    assert "8 rows wait for it, and 3 more have no room" in error.message


@pytest.mark.parametrize("num_large", [4, 8])
def test_large_requests_make_no_small_one_wait_or_fail(num_large):
    """Clients with 256 rows each fill one model, two others are idle."""
    slow = Slow()

    async def test(queue):
        tasks = [await begun(queue, job("first", num_rows=256))]
        large = [
            asyncio.create_task(queue.submit(job(f"large {n}", None, 256)))
            for n in range(num_large)
        ]
        await asyncio.sleep(0)
        small = [
            asyncio.create_task(
                queue.submit(job(f"{model} {n}", model, model=model))
            )
            for n in range(3)
            for model in ("m", "x", "y")
        ]
        await asyncio.sleep(0.01)
        slow.may_go.set()
        await asyncio.gather(*tasks, *small)
        return await asyncio.gather(*large, return_exceptions=True)

    answers = with_batcher(test, slow, 32, 512)
    refused = [one for one in answers if isinstance(one, RequestError)]
    assert len(refused) == num_large - 2
    # One call goes on, and then each model answers all its single texts.
    first, *calls = slow.calls
    assert first == ["first"] and calls[3:] == [["large 0"], ["large 1"]]
    assert sorted(calls[:3]) == [
        [f"{model} {n}" for n in range(3)] for model in ("m", "x", "y")
    ]


def test_lines_take_turns_by_their_rows():
    """While single texts keep coming, large requests have half of the rows."""
    calls = []

    def compute(jobs):
        calls.append(jobs[0].payload)
        return [None for _ in jobs]

    async def test(queue):
        async def ask(name, size, times):
            for _ in range(times):
                await queue.submit(job(name, None, size))

        # One of each waits while another one is computed.
        await asyncio.gather(
            *[ask("large", 8, 3) for _ in range(2)],
            *[ask("small", 1, 24) for _ in range(2)],
        )

    with_batcher(test, compute, 8, 64)
    for start in range(0, 45, 9):
        assert calls[start : start + 9].count("small") in (7, 8, 9)
    assert calls.count("large") == 6


@pytest.mark.parametrize("size", [2, 9, 65])
def test_larger_jobs_take_no_room_from_smaller_ones(size):
    slow = Slow()

    async def test(queue):
        first = await begun(queue, job("first"))
        large = [
            asyncio.create_task(queue.submit(job("large", None, size)))
            for _ in range(100)
        ]
        small = asyncio.create_task(queue.submit(job("small")))
        await asyncio.sleep(0.05)
        slow.may_go.set()
        found = await asyncio.gather(*large, return_exceptions=True)
        await asyncio.gather(first, small)
        return sum(one == ["large"] for one in found)

    assert with_batcher(test, slow, 8, 130) == 130 // size


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
        await queue.check_room("another")
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
    assert good == ["good"]
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
