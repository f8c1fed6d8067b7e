"""Measures everything that README.md has figures of, in turn.

    python benchmarks/measure.py RESULTS --corpus FOLDER --peers FOLDER

Each group of systems runs in turn (A B C A B C ...), see `compare.py`. The
figures are kept in the folder RESULTS. The same command goes on where it was
stopped. It writes RESULTS/tables.md and, for the group `growth`,
RESULTS/growth.png.

`--peers` is the folder with the environments that `peers/setup.sh` has made:
pytorch, ctranslate2, joeynmt, opennmt_tf. A system whose environment is missing
is left out. `--only GROUP ...` measures some groups, `--list` prints all with
their commands. Each program counts for `--seconds`, after 10 to 20 seconds of
preparation. `--once SYSTEM ...` names those that one round is enough for.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys

import compare
import growth

HERE = pathlib.Path(__file__).parent
# The search of text to text, beside peers that have ids in and ids out.
TEXTS = ("text_sentences_per_second", "sentences_per_second")
TOKENS = ("tokens_per_second",)
FIELDS = {"start": ("predict_seconds",), "growth": ("ms",)}


class Commands:
    """The commands of the systems that are there.

    Args:
        options: of the command line.
        works: size -> folder that `workload.py` wrote.
    """

    def __init__(self, options, works):
        self._options, self._works = options, works

    def ours(self, what, *arguments):
        """A command of `bench.py`."""
        options = self._options
        program = [sys.executable, HERE / "bench.py", what, *arguments]
        corpus = ["--corpus", options.corpus, "--seconds", options.seconds]
        return _line(*program, *corpus)

    def program(self, name, *arguments):
        """A program of this folder that needs this package alone."""
        return _line(sys.executable, HERE / name, *arguments)

    def peer(self, environment, program, *arguments, size="S", env=()):
        """A program of `peers/`; None if its environment is missing."""
        python = pathlib.Path(sys.executable)
        if environment:
            python = self._options.peers / environment / "bin/python"
        if not python.is_file():
            return None
        seconds = ["--seconds", self._options.seconds]
        return _line(
            *(["env", *env] if env else []),
            *(python, HERE / "peers" / program, self._works[size]),
            *(*arguments, *seconds),
        )


def _line(*words):
    return " ".join(map(str, words))


def groups(commands, translators):
    """Group -> fields of its figure, and name -> command.

    The command of a system whose environment is missing is None.

    Args:
        commands: `Commands`.
        translators: names of the catalogue.
    """
    found = {f"train_{size}": _training(commands, size) for size in "SBR"}
    for num_beams, rows in itertools.product((1, 4), (1, 32, 64)):
        name = f"beam{num_beams}_rows{rows}"
        found[name] = _search(commands, num_beams, rows)
    found["translators_train"] = {
        name: commands.ours("train", f"--size={name}") for name in translators
    }
    for num_beams in (1, 4):
        search = (f"--num_beams={num_beams}", "--batch_size=32")
        found[f"translators_beam{num_beams}"] = {
            name: commands.ours("decode", f"--size={name}", *search)
            for name in translators
        }
    found["start"] = {"ours": commands.program("start.py")}
    found["pipeline"] = {"ours": commands.ours("pipeline")}
    found["growth"] = growth.commands(commands)
    return {
        name: (FIELDS.get(name, TEXTS if "beam" in name else TOKENS), systems)
        for name, systems in found.items()
    }


def present(systems):
    """The systems whose environments are there."""
    return {name: command for name, command in systems.items() if command}


def _training(commands, size):
    """Ours and the peers, in both precisions, eager and compiled."""
    of_size, low = f"--size={size}", "--precision=bfloat16"
    systems = {
        "ours": commands.ours("train", of_size),
        "ours_bfloat16": commands.ours("train", of_size, low),
    }
    flags = {"pytorch": (), "pytorch_bfloat16": (low,)}
    # The loop of RNNsearch would be compiled for each length.
    if size != "R":
        flags["pytorch_compiled"] = ("--compile",)
        flags["pytorch_compiled_bfloat16"] = ("--compile", low)
    for name, given in flags.items():
        systems[name] = commands.peer(
            "pytorch", "train_pytorch.py", of_size, *given, size=size
        )
    if size != "B":
        systems["joeynmt"] = commands.peer(
            "joeynmt", "train_joeynmt.py", of_size, size=size
        )
    if size == "S":
        systems["opennmt_tf"] = commands.peer(
            "opennmt_tf", "train_opennmt_tf.py"
        )
        for name in ("keras_hub", "tf_tutorial"):  # In our environment.
            systems[name] = commands.peer("", f"train_{name}.py")
    return systems


def _search(commands, num_beams, rows):
    """Ours and CTranslate2 in its precisions, with both of its libraries."""
    both = (f"--num_beams={num_beams}", f"--batch_size={rows}")
    systems = {"ours": commands.ours("decode", *both)}
    for kind in ("float32", "bfloat16", "int8"):
        for library, uses_mkl in (("onednn", 0), ("mkl", 1)):
            systems[f"ctranslate2_{kind}_{library}"] = commands.peer(
                "ctranslate2",
                "decode_ctranslate2.py",
                *both,
                f"--compute_type={kind}",
                env=(f"CT2_USE_MKL={uses_mkl}",),
            )
    return systems


def write_workloads(works, corpus, commands):
    """Writes the workloads that commands read and that are missing.

    Args:
        works: size -> folder.
        corpus: of the option.
        commands: all that will run.
    """
    for size, folder in works.items():
        is_read = any(str(folder) in command for command in commands)
        if is_read and not (folder / "batches.npz").is_file():
            program = [sys.executable, HERE / "workload.py", folder]
            given = ["--size", size, "--corpus", corpus]
            subprocess.run([*program, *given], check=True)


def write_tables(path, tables):
    """Writes a section for each group."""
    sections = [f"## {name}\n\n{text}" for name, text in tables.items()]
    path.write_text("\n".join(sections), "utf-8")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--corpus", default="phrases")
    parser.add_argument("--peers", type=pathlib.Path, default="peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--only", nargs="+", metavar="GROUP")
    parser.add_argument("--once", nargs="+", metavar="SYSTEM", default=())
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    import bench

    options.results.mkdir(parents=True, exist_ok=True)
    works = {size: options.results / f"work_{size}" for size in "SBR"}
    commands = Commands(options, works)
    translators = [name for name in bench.SIZES if name not in "SBR"]
    found = groups(commands, translators)
    systems = {name for _, group in found.values() for name in group}
    for what, given, known in (
        ("group", options.only or (), found),
        ("system", options.once, systems),
    ):
        if unknown := {*given} - {*known}:
            sys.exit(
                f"There is no {what} {', '.join(sorted(unknown))}. There are: "
                f"{', '.join(known)}"
            )
    chosen = {
        name: (fields, present(group))
        for name, (fields, group) in found.items()
        if name in (options.only or found)
    }
    if options.list:
        for name, (_, systems) in chosen.items():
            print(name, *(f"\n    {n}: {c}" for n, c in systems.items()))
        return
    programs = [
        one for _, systems in chosen.values() for one in systems.values()
    ]
    write_workloads(works, options.corpus, programs)
    tables, kept = {}, options.results / "results.jsonl"
    for name, (fields, systems) in chosen.items():
        print(f"\n# {name}")
        figures = compare.collect(
            systems, options.rounds, fields, kept, options.once
        )
        tables[name] = compare.table(figures, fields[0])
        if name == "growth":
            tables[name] = growth.table(figures)
            growth.draw(figures, options.results / "growth.png")
        print(f"\n{tables[name]}")
        write_tables(options.results / "tables.md", tables)
    print(json.dumps({"groups": [*chosen], "results": str(kept)}))


if __name__ == "__main__":
    main()
