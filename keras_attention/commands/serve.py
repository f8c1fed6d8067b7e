"""`keras-attention serve`."""

import dataclasses
import importlib.util
import os
import pathlib
from typing import Annotated

from cyclopts import Parameter

from keras_attention.commands import arguments
from keras_attention.config.choices import Choices, choice
from keras_attention.server.settings import (
    Limits,
    Settings,
    bound_socket,
    check_name,
)

# Top packages of the extra `serve`.
_PACKAGES = ("starlette", "uvicorn", "h11", "grpc", "grpc_health")


@dataclasses.dataclass(frozen=True)
class Options(Choices):
    """What to serve, as TensorFlow Serving's flags name it, and where."""

    model_base_path: str | None = choice(
        None, "The folder of a model, in place of MODELS.", is_path=True
    )
    model_name: str | None = choice(
        None,
        "The name by which clients know the model. By default the name of its "
        "folder. This option is for a single model.",
    )
    model_config_file: str | None = choice(
        None,
        "A file with TensorFlow Serving's ModelServerConfig as text: several "
        "models, their versions and labels.",
        is_path=True,
    )
    host: str = choice(
        Settings.host,
        "The server listens at this address. By default, only this machine "
        "reaches it. 0.0.0.0 is every address of the machine. There is neither "
        "a password nor encryption.",
    )
    rest_api_port: int = choice(
        Settings.rest_port,
        "The port of REST. 0 takes any free port.",
        at_least=0,
        below=65536,
    )
    port: int = choice(
        Settings.grpc_port,
        "The port of gRPC. 0 takes any free port.",
        at_least=0,
        below=65536,
    )
    file_system_poll_wait_seconds: float = choice(
        Settings.poll_seconds,
        "The server looks for new versions every so many seconds. 0 turns this "
        "off.",
        at_least=0,
    )
    reload_root: str | None = choice(
        None,
        "Lets clients choose other models by HandleReloadConfigRequest. They "
        "may name folders below this folder, and those that the server was "
        "started with. By default, such requests are refused.",
        is_path=True,
    )
    allowed_hosts: str = choice(
        "",
        "Host names that REST requests may use, with commas between them. * "
        "allows any. Loopback names always work. By default, a server at a "
        "loopback address accepts no other name, and a server at another "
        "address accepts every name.",
    )
    enable_cors_support: bool = choice(
        Settings.has_cors,
        "Lets web pages of other sites send REST requests (CORS).",
    )
    log_texts: bool = choice(
        Settings.log_texts,
        "Write the requests' texts to the log, too.",
    )


@dataclasses.dataclass(frozen=True)
class LimitOptions(Choices):
    """What the server refuses, so that it stays up."""

    max_batch_size: int = choice(
        Limits.max_batch_size,
        "A model answers at most this many rows in one call. 1 turns batching "
        "off.",
        at_least=1,
    )
    max_rows: int = choice(
        Limits.max_rows,
        "A request may have at most this many rows.",
        at_least=1,
    )
    max_queued_rows: int = choice(
        Limits.max_queued_rows,
        "At most this many rows wait. A request beyond them is answered by 429 "
        "or RESOURCE_EXHAUSTED.",
        at_least=1,
    )
    max_body_bytes: int = choice(
        Limits.max_body_bytes,
        "A request, and each of its inputs, may have at most this many bytes.",
        at_least=1,
    )
    max_text_bytes: int = choice(
        Limits.max_text_bytes,
        "A text, or another string, may have at most this many bytes.",
        at_least=1,
    )
    max_connections: int = choice(
        Limits.max_connections,
        "REST has at most this many connections, and gRPC this many calls at a "
        "time. Others are answered by 503 or RESOURCE_EXHAUSTED.",
        at_least=1,
    )
    rest_api_timeout_in_ms: int = choice(
        int(1000 * Limits.timeout),
        "A REST request takes at most this many milliseconds.",
        at_least=1,
    )
    drain_seconds: float = choice(
        Limits.drain_seconds,
        "After SIGTERM, the server takes at most this many seconds to answer "
        "the requests in flight. A second SIGTERM ends it at once.",
        at_least=0,
    )
    num_batch_threads: int | None = choice(
        None,
        "This many batches are computed at the same time. By default one on "
        "each core.",
        at_least=1,
    )


app = arguments.make_app("serve", "Serve models by TensorFlow Serving's API.")


@app.default
def serve(
    *models: Annotated[
        str,
        Parameter(help="Folders of SavedModels or of runs that have one."),
    ],
    options: Annotated[Options, arguments.group("Options")] = Options(),
    limits: Annotated[LimitOptions, arguments.group("Limits")] = LimitOptions(),
) -> None:
    """Answers requests until SIGTERM. The log is on standard error."""
    paths = _paths(models, options)
    _check_together(options, limits)
    _check_packages()
    from keras_attention.server import model_configs

    if options.model_config_file:
        configs = model_configs.from_file(options.model_config_file)
        for config in configs:
            arguments.check_model(str(config.folder))
    else:
        configs = [
            model_configs.from_folder(path, options.model_name)
            for path in paths
        ]
        model_configs.check_names(configs)
    # The ports are free, or this ends before TensorFlow is imported.
    for flag in ("rest_api_port", "port"):
        bound_socket(options.host, getattr(options, flag), flag).close()
    arguments.import_tensorflow()
    import tensorflow as tf

    from keras_attention import devices
    from keras_attention.server import application

    if "TF_NUM_INTRAOP_THREADS" not in os.environ:
        # The cores are for the batches: more threads would wait for them.
        tf.config.threading.set_intra_op_parallelism_threads(1)
    root = options.reload_root
    bounds = dataclasses.asdict(limits)
    num_threads = bounds.pop("num_batch_threads") or devices.num_cores()
    timeout = bounds.pop("rest_api_timeout_in_ms") / 1000
    application.run(
        configs,
        Settings(
            host=options.host,
            rest_port=options.rest_api_port,
            grpc_port=options.port,
            poll_seconds=options.file_system_poll_wait_seconds,
            num_threads=num_threads,
            reload_root=pathlib.Path(root).absolute() if root else None,
            log_texts=options.log_texts,
            allowed_hosts=tuple(filter(None, options.allowed_hosts.split(","))),
            has_cors=options.enable_cors_support,
        ),
        Limits(timeout=timeout, **bounds),
        _announce,
    )


def _paths(models: tuple[str, ...], options: Options) -> tuple[str, ...]:
    """The folders of the models, which are there.

    Raises:
        ValueError: If there is none, if they are named in two ways, or if a
            name, a file or a folder that belongs to them is wrong.
    """
    file, base = options.model_config_file, options.model_base_path
    if [bool(models), base is not None, file is not None].count(True) != 1:
        raise ValueError(
            "Name the models in one way: as MODELS, by --model_base_path or by "
            "--model_config_file."
        )
    arguments.find_file("model_config_file", file)
    if base is not None:
        models = (base,)
    if options.model_name is not None and len(models) != 1:
        raise ValueError(
            "--model_name is the name of one model. Several models have the "
            "names of their folders, or those of --model_config_file."
        )
    if options.model_name is not None:
        check_name(options.model_name)
    for path in models:
        _check_model(path)
    root = options.reload_root
    if root is not None and not pathlib.Path(root).is_dir():
        raise ValueError(f"--reload_root: there is no folder {root}.")
    return models


def _check_model(path: str) -> None:
    """A run is served by the SavedModel in it.

    Raises:
        ValueError: If there is no SavedModel.
    """
    arguments.check_model(path)
    folder = pathlib.Path(path).expanduser()
    if (folder / "config.yaml").is_file() and not any(
        folder.glob("savedmodel/*/saved_model.pb")
    ):
        raise ValueError(
            f"{path} is a run without a SavedModel. `keras-attention export "
            f"{path} --to savedmodels/NAME` writes one."
        )


def _check_together(options: Options, limits: LimitOptions) -> None:
    """Checks that choices fit each other.

    Raises:
        ValueError: If they do not.
    """
    if options.port == options.rest_api_port != 0:
        raise ValueError(
            "REST and gRPC need a port each: --rest_api_port and --port are "
            f"both {options.port}."
        )
    if limits.max_rows > limits.max_queued_rows:
        raise ValueError(
            "A request waits with all its rows, so --max_queued_rows="
            f"{limits.max_queued_rows} has to be at least --max_rows="
            f"{limits.max_rows}."
        )


def _check_packages() -> None:
    """Checks that the extra `serve` is installed.

    Raises:
        ImportError: If it is not.
    """
    missing = [
        name for name in _PACKAGES if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise ImportError(
            "The server needs the extra `serve`. In a clone of the package: "
            'python -m pip install -e ".[serve]". Missing packages: '
            f"{', '.join(missing)}"
        )


def _announce(server) -> None:
    """The ports, for whoever asked for any that is free."""
    names = ", ".join(server.predictor.models.by_name)
    print(f"Models: {names}")
    print(f"REST port: {server.rest_port}")
    print(f"gRPC port: {server.grpc_port}", flush=True)
