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
    logs,
    metrics,
    model_configs,
    served_model,
    versions,
)
from keras_attention.server.errors import Code, RequestError
from keras_attention.server.served_model import ServedModel, State, Status


class Models:
    """The models by their names. It is used in the event loop alone.

    Args:
        configs: the models to serve.
        meters: a `metrics.Metrics`.
        load: function of a folder and a number to a version.

    Attributes:
        by_name: name -> `ServedModel`.
    """

    def __init__(
        self,
        configs: Sequence[model_configs.ModelConfig],
        meters: metrics.Metrics,
        load: Callable = versions.load,
    ):
        self.by_name = {config.name: ServedModel(config) for config in configs}
        self._meters = meters
        self._load_files = load
        # One after the other, so that loading leaves cores to the answers.
        self._loader = concurrent.futures.ThreadPoolExecutor(
            1, thread_name_prefix="load"
        )
        # What it does now, or did last.
        self._reading = self._loader.submit(int)
        self._changing = asyncio.Lock()
        self._drains = set()

    @property
    def are_ready(self) -> bool:
        """Whether each model has a version that answers."""
        return all(model.available for model in self.by_name.values())

    @property
    def is_loading(self) -> bool:
        """Whether a version is being loaded: a load cannot be interrupted."""
        return not self._reading.done()

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
            await asyncio.sleep(seconds)
            await self.update()

    async def update(self) -> None:
        """Loads the versions that are there now, and frees those replaced."""
        async with self._changing:
            for model in [*self.by_name.values()]:
                try:
                    await self._update(model)
                except Exception as error:
                    # Such as a folder that cannot be read now.
                    logs.failure("poll", error, model=model.config.name)

    async def reload(
        self, configs: Iterable[model_configs.ModelConfig]
    ) -> None:
        """Serves these models from now on, and no others.

        Nothing changes for a model that stays but its policy and its labels.

        Raises:
            RequestError: If one of the models has no version that can be
                loaded, or if a label names none. All stays as it was then.
        """
        async with self._changing:
            models, wanted = {}, {}
            for config in configs:
                model = self.by_name.get(config.name)
                if model is None or model.config.folder != config.folder:
                    model = ServedModel(config)
                models[config.name] = model
                # The folder may be that of one version.
                wanted[config.name] = dataclasses.replace(
                    config, single=model.config.single
                )
            old_configs = {name: model.config for name, model in models.items()}
            try:
                for name, model in models.items():
                    model.config = wanted[name]
                    await self._update(model)
                    _check_reloaded(model)
            except BaseException:
                for name, model in models.items():
                    model.config = old_configs[name]
                    if model is not self.by_name.get(name):
                        self._free_all(model)
                raise
            gone = [
                model
                for name, model in self.by_name.items()
                if models.get(name) is not model
            ]
            self.by_name = models
            for model in gone:
                self._free_all(model)

    async def _update(self, model: ServedModel) -> None:
        tried = set()
        while True:
            refused = tried - {*model.available}
            wanted = await self._in_loader(model.wanted, refused)
            missing = [n for n in wanted if n not in model.available]
            if not missing:
                break
            # A failure may bring an older version into the choice.
            await self._load(model, missing[-1], wanted[missing[-1]])
            tried.add(missing[-1])
        if wanted:
            for number in model.available:
                if number not in wanted:
                    self._free(model, number)

    async def _load(self, model: ServedModel, number: int, path) -> None:
        name = model.config.name
        status = model.statuses[number] = Status(State.LOADING)
        logs.event("load", model=name, version=number)
        start = time.monotonic()
        before = await self._in_loader(served_model.fingerprint, path)
        try:
            status.loaded = await self._in_loader(
                self._load_files, path, number
            )
        except Exception as error:
            status.state = State.END
            status.fingerprint = before
            status.error = str(error).split("\n")[0] or type(error).__name__
            logs.event(
                "refused",
                level="error",
                model=name,
                version=number,
                error=status.error,
            )
        else:
            status.state = State.AVAILABLE
            logs.event(
                "available",
                model=name,
                version=number,
                seconds=round(time.monotonic() - start, 3),
                manifest=status.loaded.has_manifest,
            )
        self._meters.count_load(
            str(path), not status.error, time.monotonic() - start
        )

    async def _in_loader(self, function, *args):
        """Calls what reads files in a thread: a disk may be slow."""
        self._reading = self._loader.submit(function, *args)
        return await asyncio.wrap_future(self._reading)

    def _free_all(self, model: ServedModel) -> None:
        for number in model.available:
            self._free(model, number)

    def _free(self, model: ServedModel, number: int) -> None:
        """From now on the version gets no request."""
        status = model.statuses[number]
        status.state = State.UNLOADING
        task = asyncio.create_task(self._drain(model, number, status))
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)

    async def _drain(self, model, number, status) -> None:
        while status.num_requests:
            await asyncio.sleep(0.05)
        status.loaded = None
        status.state = State.END
        await self._in_loader(gc.collect)
        logs.event("freed", model=model.config.name, version=number)

    async def stop(self) -> None:
        """Ends the loading. A load that has begun is left alone."""
        self._loader.shutdown(wait=False, cancel_futures=True)
        for task in self._drains:
            task.cancel()


def _check_reloaded(model: ServedModel) -> None:
    name, available = model.config.name, model.available
    if not available:
        reasons = [s.error for s in model.statuses.values() if s.error]
        raise RequestError(
            Code.FAILED_PRECONDITION,
            f"Expected a version of {name} that can be loaded. Received: "
            f"{reasons[0] if reasons else 'none'}",
        )
    for label, number in model.config.labels.items():
        if number not in available:
            raise RequestError(
                Code.FAILED_PRECONDITION,
                f"Expected the label {label!r} on a version of {name} that is "
                f"served, one of {available}. Received: {number}",
            )
