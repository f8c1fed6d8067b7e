"""All models that are served: found, loaded, swapped and freed.

A new version is loaded and warmed beside the old one, and takes its place at
once. The old one answers the requests that it has, and is freed. A version that
cannot be loaded changes nothing. A version whose folder is deleted answers on,
until another one is there to take its place.
"""

import asyncio
import concurrent.futures
import dataclasses
import gc
import time
from collections.abc import Callable, Iterable, Sequence

from keras_attention.server import (
    counters,
    logs,
    model_configs,
    served_model,
    versions,
)
from keras_attention.server.errors import Code, RequestError
from keras_attention.server.served_model import ServedModel, State, Status


@dataclasses.dataclass
class _Plan:
    """What a model is to serve.

    Attributes:
        model: a `ServedModel`.
        config: the configuration that it is to have.
        wanted: the versions that it is to have: number -> folder.
        fresh: number -> `Status` of those that were loaded for it.
    """

    model: ServedModel
    config: model_configs.ModelConfig
    wanted: dict = dataclasses.field(default_factory=dict)
    fresh: dict = dataclasses.field(default_factory=dict)

    @property
    def loaded(self) -> set[int]:
        """The versions in memory."""
        return {*self.model.available, *self.fresh}

    @property
    def available(self) -> set[int]:
        """The versions that would answer: what is gone is kept alone."""
        return self.loaded & {*self.wanted} or {*self.model.available}


class Models:
    """The models by their names. It is used in the event loop alone.

    Args:
        configs: the models to serve.
        metrics: a `counters.Metrics`.
        load: as `versions.load`.

    Attributes:
        by_name: name -> `ServedModel`.
    """

    def __init__(
        self,
        configs: Sequence[model_configs.ModelConfig],
        metrics: counters.Metrics,
        load: Callable = versions.load,
    ):
        self.by_name = {config.name: ServedModel(config) for config in configs}
        self._metrics = metrics
        self._load_files = load
        # One after the other, so that loading leaves cores to the answers.
        self._loader = concurrent.futures.ThreadPoolExecutor(
            1, thread_name_prefix="load"
        )
        # What it does now, and what waits for it.
        self._readings: set[concurrent.futures.Future] = set()
        self._changing = asyncio.Lock()
        # Whether each model was tried. Until then, the first signatures are
        # warmed alone: a server is ready sooner.
        self._has_started = False
        # The event loop keeps weak references alone: a task could vanish.
        self._tasks = set()

    @property
    def are_ready(self) -> bool:
        """Whether each model has a version that answers."""
        return all(model.available for model in self.by_name.values())

    @property
    def is_reading(self) -> bool:
        """Whether files are read, such as a version's: that goes to its end."""
        return any(not reading.done() for reading in [*self._readings])

    def get(self, name: str) -> ServedModel:
        """A model by its name.

        Raises:
            RequestError: If there is none of this name.
        """
        if name not in self.by_name:
            raise RequestError(
                Code.NOT_FOUND,
                f"Servable not found for request: Latest({name[:200]})",
            )
        return self.by_name[name]

    async def watch(self, seconds: float) -> None:
        """Looks for new versions again and again."""
        while True:
            # First: the server's start has just looked.
            await asyncio.sleep(seconds)
            await self.update()

    async def update(self) -> None:
        """Loads the versions that are there now, and frees those replaced."""
        async with self._changing:
            for model in self.by_name.values():
                # One model's fault is no reason to forget the others.
                try:
                    self._take(await self._plan(model, model.config))
                except Exception as error:
                    # Such as a folder that cannot be read now.
                    logs.failure("poll", error, model=model.config.name)
            self._has_started = True

    def warm(self) -> None:
        """Has all warm-up requests answered, and does not wait for it.

        A server that `check` refuses would not end before it is warm.
        """
        for name, model in self.by_name.items():
            for number in model.available:
                self._read(_warm, name, number, model.statuses[number])

    def check(self) -> None:
        """Refuses a model without a version, and a label of none.

        Raises:
            RequestError: If there is one.
        """
        for model in self.by_name.values():
            _check(model, model.config, model.available)

    async def reload(
        self, configs: Iterable[model_configs.ModelConfig]
    ) -> None:
        """Serves these models from now on, and no others.

        Nothing changes for a model that stays but its policy and its labels.
        A reload that has begun goes on if its client does not wait for it.

        Raises:
            RequestError: If one of the models has no version that can be
                loaded, or if a label names none. All stays as it was then.
        """
        task = asyncio.create_task(self._reload([*configs]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    async def _reload(self, configs) -> None:
        async with self._changing:
            plans = []
            try:
                for config in configs:
                    model = self.by_name.get(config.name)
                    if model is None or model.config.folder != config.folder:
                        model = ServedModel(config)
                    # The folder may be that of one version.
                    config = dataclasses.replace(
                        config, single=model.config.single
                    )
                    plan = await self._plan(model, config)
                    plans.append(plan)
                    _check(model, config, plan.available)
            # A cancelled reload, too: `stop` ends it so.
            except BaseException:
                for plan in plans:
                    self._drop(plan)
                raise
            # Nothing is awaited from here on: no request sees half a reload.
            models = {plan.config.name: plan.model for plan in plans}
            for name, model in self.by_name.items():
                if models.get(name) is not model:
                    for number in model.available:
                        self._free(model, number)
            for plan in plans:
                self._take(plan)
            self.by_name = models
            if any(plan.fresh for plan in plans):
                # As `application.run` does at the start.
                gc.freeze()

    async def _plan(self, model: ServedModel, config) -> _Plan:
        """Loads what is missing. It answers nothing yet."""
        plan = _Plan(model, config)
        refused = set()
        try:
            while True:
                plan.wanted = await self._in_loader(
                    model.wanted, config, refused
                )
                missing = [n for n in plan.wanted if n not in plan.loaded]
                if not missing:
                    return plan
                # A failure may bring an older version into the choice.
                # The greatest first: it answers whoever names no version.
                number = missing[-1]
                status = await self._load(model, number, plan.wanted[number])
                if status.error:
                    refused.add(number)
                else:
                    plan.fresh[number] = status
        except BaseException:
            self._drop(plan)
            raise

    def _take(self, plan: _Plan) -> None:
        """Lets the versions of a plan answer, and frees the others."""
        model = plan.model
        model.config = plan.config
        for number, status in plan.fresh.items():
            if number in plan.wanted:
                status.state = State.AVAILABLE
            else:
                # Its folder was there, and went while another one was loaded.
                self._free(model, number)
        for number in model.available:
            # If no folder is left, or none is good, what is loaded stays.
            if plan.wanted and number not in plan.wanted:
                self._free(model, number)
        model.is_starting = False

    def _drop(self, plan: _Plan) -> None:
        """Forgets what was loaded for a plan that comes to nothing."""
        for number in plan.fresh:
            self._free(plan.model, number)

    async def _load(self, model: ServedModel, number: int, path) -> Status:
        name = model.config.name
        before = model.statuses.get(number)
        status = model.statuses[number] = Status(State.LOADING)
        logs.event("load", model=name, version=number)
        start = time.monotonic()
        # Before the load: files that change meanwhile are tried again.
        fingerprint = await self._in_loader(served_model.fingerprint, path)
        try:
            loaded = await self._in_loader(
                self._load_files, path, number, not self._has_started
            )
            if self._has_started:
                # An older version answers meanwhile.
                await self._in_loader(loaded.warm)
            status.loaded = loaded
        except Exception as error:
            status.fail(error, path, fingerprint, before)
            logs.event(
                "refused",
                level="error",
                model=name,
                version=number,
                error=served_model.first_line(error),
            )
        else:
            logs.event(
                "available",
                model=name,
                version=number,
                seconds=round(time.monotonic() - start, 3),
                manifest=status.loaded.has_manifest,
            )
        self._metrics.count_load(
            str(path), not status.error, time.monotonic() - start
        )
        return status

    async def _in_loader(self, function, *args):
        """Calls what reads files in a thread: a disk may be slow."""
        return await asyncio.wrap_future(self._read(function, *args))

    def _read(self, function, *args) -> concurrent.futures.Future:
        reading = self._loader.submit(function, *args)
        self._readings.add(reading)
        reading.add_done_callback(self._readings.discard)
        return reading

    def _free(self, model: ServedModel, number: int) -> None:
        """From now on the version gets no request."""
        status = model.statuses[number]
        status.state = State.UNLOADING
        task = asyncio.create_task(self._drain(model, number, status))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self, model, number, status) -> None:
        # The requests that have begun keep it, see `served_model.in_use`.
        while status.num_requests:
            await asyncio.sleep(0.05)
        # TensorFlow frees the variables with the last reference to them.
        status.loaded = None
        status.state = State.END
        await self._in_loader(_collect)
        logs.event("freed", model=model.config.name, version=number)

    async def stop(self) -> None:
        """Ends the loading. A load that has begun is left alone."""
        self._loader.shutdown(wait=False, cancel_futures=True)
        for task in self._tasks:
            task.cancel()


def _warm(name: str, number: int, status: Status) -> None:
    loaded = status.loaded
    if loaded is None:  # Another version has taken its place.
        return
    try:
        loaded.warm()
    except Exception as error:
        # It answers by the other signatures, and by this one says why not.
        logs.failure("warm-up", error, model=name, version=number)
    _collect()  # The whole model has taken the place of its first part.


def _collect() -> None:
    """Frees what is no longer used, among what `application.run` froze, too."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _check(model: ServedModel, config, available) -> None:
    """Refuses a model without an answering version, and a label of none."""
    name = config.name
    if not available:
        reasons = [
            f"version {number}: {status.error}"
            for number, status in sorted(model.statuses.items(), reverse=True)
            if status.error
        ]
        raise RequestError(
            Code.FAILED_PRECONDITION,
            f"{name} has no version that can be loaded: "
            f"{'; '.join(reasons) or 'none is in its folder'}.",
        )
    for label, number in config.labels.items():
        if number not in available:
            raise RequestError(
                Code.FAILED_PRECONDITION,
                f"The label {label[:200]!r} is on version {number} of {name}, "
                "which is not served. These are: "
                f"{', '.join(map(str, sorted(available)[:20]))}.",
            )
