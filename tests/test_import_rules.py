"""The import table: which part of the package may import which others."""

import ast
import importlib.util
import pathlib
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "keras_attention"
FILES = sorted(PACKAGE.rglob("*.py"))

ARRAYS = {"keras", "numpy"}
GRAPH = ARRAYS | {"tensorflow"}

# The longest matching key decides. Left: parts of this package; right: other
# distributions. The standard library is free to all but tokens.
BELOW_SERVING = {"data", "decoding", "tokens", "files", "devices"}
# `config.search` says what may be chosen of a search.
BELOW_SERVING |= {"on_demand", "config.search", "published"}
BELOW_TRAINING = {"config", "plotting", "data", "files", "devices", "tokens"}
BELOW_TRAINING |= {"workers", "on_demand", "published"}
TASKS = {"config", "data", "models", "decoding", "evaluation", "plotting"}
TASKS |= {"serving", "training.objectives", "training.callbacks"}
TASKS |= {"training.stages", "__version__", "tasks", "tokens", "files"}
TASKS |= {"suggestions"}
COMMANDS = BELOW_TRAINING | TASKS | {"training", "commands", "runs"}
TABLE = {
    "__init__": ({"on_demand"}, set()),
    "__main__": ({"cli"}, set()),
    # It imports TensorFlow without its noise, in a function.
    "on_demand": (set(), {"tensorflow"}),
    "tokens": (set(), None),
    "config": (
        {"config", "models.catalog", "published", "suggestions"},
        {"yaml"},
    ),
    "files": (set(), set()),
    "suggestions": (set(), set()),
    "workers": (set(), set()),
    "devices": ({"workers"}, {"tensorflow"}),
    "plotting": ({"plotting"}, {"matplotlib", "numpy", "PIL"}),
    "layers": ({"layers"}, ARRAYS),
    "models.__init__": ({"models.catalog"}, set()),
    "models.catalog": ({"suggestions"}, set()),
    "models.paper_model": ({"layers", "suggestions", "tokens"}, ARRAYS),
    "models.seq2seq": ({"models.paper_model", "tokens"}, ARRAYS),
    "models.language_model": ({"models.paper_model", "tokens"}, ARRAYS),
    "models.classifier": ({"models.paper_model", "tokens"}, ARRAYS),
    "models": (
        {"layers", "tokens", "models.seq2seq", "models.language_model"}
        | {"models.classifier", "models.paper_model"},
        ARRAYS,
    ),
    # The Transformer, but for where its positions are.
    **dict.fromkeys(
        ["models.marian", "models.roformer"],
        ({"layers", "models.transformer"}, ARRAYS),
    ),
    # RNNsearch, but for how it looks.
    **dict.fromkeys(
        [
            f"models.{way}_rnnsearch"
            for way in "diagonal hard monotonic structured window".split()
        ],
        ({"layers", "models.rnnsearch"}, ARRAYS),
    ),
    # Published weights: names and arrays, then a model.
    "published": (
        {"published", "tokens"},
        {"numpy", "safetensors", "ctranslate2"},
    ),
    "models.pretrained": ({"models.catalog", "published"}, set()),
    # Its objective is a reward.
    "models.self_critical": ({"tokens"}, ARRAYS),
    "models.intra_attention_summarizer": (
        {"layers", "tokens", "models.seq2seq", "models.self_critical"},
        ARRAYS,
    ),
    "decoding": ({"decoding", "tokens"}, ARRAYS),
    "data": (
        {"data", "tokens", "files", "on_demand", "published"} | {"suggestions"},
        GRAPH
        | {"tensorflow_datasets", "tensorflow_text", "sentencepiece"}
        | {"tokenizers"}
        | {"backports", "babel", "num2words"},
    ),
    "evaluation": (
        {"evaluation", "data", "plotting", "on_demand", "suggestions"},
        {"sacrebleu", "rouge_score", "numpy"},
    ),
    # Gradients are TensorFlow's.
    "evaluation.attribution": ({"tokens"}, {"numpy", "tensorflow"}),
    "serving": (
        BELOW_SERVING | {"serving"},
        GRAPH | {"tensorflow_text", "tensorflow_serving"},
    ),
    # The server turns requests to arrays and back: it knows no model.
    "server": (
        {"__version__", "server", "serving", "on_demand"},
        GRAPH
        | {"starlette", "uvicorn", "h11", "grpc", "grpc_health"}
        | {"google", "tensorflow_serving"},
    ),
    "training": (BELOW_TRAINING | {"training"}, GRAPH | {"rich"}),
    "training.losses": ({"tokens"}, ARRAYS),
    "training.metrics": ({"tokens", "training.losses"}, ARRAYS),
    "training.blocks": (set(), {"tensorflow"}),
    "training.objectives": (
        {"layers", "training.blocks", "training.losses"},
        ARRAYS,
    ),
    # It measures products as wide as those of a model of the catalogue.
    "training.precision": (
        {"config", "models.catalog", "training.run_directory"},
        {"tensorflow"},
    ),
    "training.callbacks": (set(), ARRAYS),
    "training.schedules": (set(), ARRAYS),
    "training.optimizers": (set(), GRAPH),
    "tasks": (TASKS, GRAPH | {"babel"}),
    # One stage of a run answers the corpus of the next.
    "tasks.distillation": (
        TASKS | {"training.restore", "training.run_directory"},
        GRAPH,
    ),
    "tasks.ensembles": (
        TASKS | {"training.restore", "training.run_directory"},
        GRAPH,
    ),
    # A verb's file answers without TensorFlow. It imports these three when
    # its arguments are right.
    "commands": (
        {"commands.arguments", "commands.asked_lines", "commands.predict"}
        | {"commands.many_lines", "commands.possible_values"}
        | {"config", "models.catalog"}
        | {"server.settings", "on_demand", "suggestions"},
        {"cyclopts"},
    ),
    "runs": (BELOW_TRAINING | TASKS | {"training"}, GRAPH),
    "commands.scoring": (COMMANDS, GRAPH),
    "cli": ({"commands.arguments", "__version__"}, {"cyclopts"}),
}
# Their imports inside functions are the point of these modules.
LAZY = ("cli", "__init__", "commands")


def module_name(path):
    """`layers/masks.py` -> `layers.masks`, relative to the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def rule_of(module):
    """The row of the longest key that is `module` or a package around it."""
    keys = [key for key in TABLE if within(module, key)]
    if not keys:
        raise LookupError(f"{module} has no row in the import table")
    return TABLE[max(keys, key=len)]


def within(name, package):
    return name == package or name.startswith(package + ".")


def statements(tree, lazy):
    """All nodes; with `lazy`, only those that an import of it runs."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        if lazy and isinstance(node, functions):
            continue
        if lazy and isinstance(node, ast.If) and for_types(node):
            pending.extend(node.orelse)
        else:
            pending.extend(ast.iter_child_nodes(node))


def for_types(node):
    return ast.unparse(node.test) == "typing.TYPE_CHECKING"


def imported_names(module, source):
    """The absolute dotted names that a module imports."""
    package = f"keras_attention.{module}".rpartition(".")[0]
    lazy = module.split(".")[0] in LAZY or module.endswith(".__init__")
    for node in statements(ast.parse(source), lazy):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level + (node.module or "")
            origin = importlib.util.resolve_name(dots, package)
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def broken_rules(module, source):
    """The imports of `source` that the table refuses to `module`."""
    ours, others = rule_of(module)
    for name in imported_names(module, source):
        top, _, rest = name.partition(".")
        if top == "keras_attention":
            allowed = any(within(rest, part) for part in ours)
        elif others is None:
            allowed = False
        else:
            allowed = top in others or top in sys.stdlib_module_names
        if not allowed:
            yield name


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_file_imports_only_what_the_table_allows(path):
    module = module_name(path)
    assert list(broken_rules(module, path.read_text("utf-8"))) == []


@pytest.mark.parametrize("part", ["layers", "models", "decoding"])
def test_no_row_of_the_core_allows_tensorflow(part):
    rows = [row for key, row in TABLE.items() if within(key, part)]
    assert rows
    assert all("tensorflow" not in others for _, others in rows)


@pytest.mark.parametrize(
    "module, source, refused",
    [
        ("layers.masks", "import tensorflow as tf", "tensorflow"),
        ("layers.masks", "def f():\n  import tensorflow", "tensorflow"),
        ("layers.masks", "from .. import tokens", "keras_attention.tokens"),
        (
            "models.luong",
            "from .transformer import Transformer",
            "keras_attention.models.transformer.Transformer",
        ),
        (
            "decoding",
            "from keras_attention import models",
            "keras_attention.models",
        ),
        ("tokens", "import os", "os"),
        ("cli", "import keras", "keras"),
        (
            "cli",
            "if True:\n  from . import training",
            "keras_attention.training",
        ),
        ("evaluation", "import tensorflow.io", "tensorflow.io"),
        ("commands.train", "import tensorflow", "tensorflow"),
        (
            "commands.train",
            "from keras_attention import runs",
            "keras_attention.runs",
        ),
        (
            "serving.translator",
            "from keras_attention.training import losses",
            "keras_attention.training.losses",
        ),
        (
            "server.rest",
            "from keras_attention.data.vocabularies import tokenizer",
            "keras_attention.data.vocabularies.tokenizer",
        ),
        (
            "training.loop",
            "def f():\n  from keras_attention import tasks",
            "keras_attention.tasks",
        ),
        (
            "training.loop",
            "from keras_attention import evaluation",
            "keras_attention.evaluation",
        ),
        (
            "training.loop",
            "from keras_attention.commands import arguments",
            "keras_attention.commands.arguments",
        ),
        (
            "tasks.translation",
            "from keras_attention.training import loop",
            "keras_attention.training.loop",
        ),
        ("config.groups", "import keras", "keras"),
    ],
)
def test_a_broken_rule_is_found(module, source, refused):
    assert list(broken_rules(module, source)) == [refused]


@pytest.mark.parametrize(
    "module, source",
    [
        ("cli", "def main():\n  import tensorflow\n  from . import training"),
        ("layers.__init__", "from keras_attention.layers.masks import x"),
        (
            "commands.train",
            "def train():\n  from keras_attention.training import loop",
        ),
        (
            "tasks.translation",
            "from keras_attention.training import objectives",
        ),
        ("models.luong", "import math\nfrom keras_attention import layers"),
        ("models.luong", "from keras_attention.models import seq2seq"),
    ],
)
def test_a_kept_rule_is_not(module, source):
    assert list(broken_rules(module, source)) == []


def test_a_file_without_a_row_is_found():
    with pytest.raises(LookupError, match="helpers has no row"):
        rule_of("helpers")
