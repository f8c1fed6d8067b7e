"""What `evaluate` asks of a task."""

import types

from keras_attention import tasks
from keras_attention.commands import evaluate, scoring


def test_what_is_not_timed_loads_no_comet():
    """Nor is a run that was loaded with its beams asked for them again."""
    asked = []

    class Task:
        compares = True

        def evaluate(self, servable, test_set, **options):
            asked.append((len(test_set.sources), options))

    test_set = tasks.TestSet("test", ["a", "b", "c"], ["d", "e", "f"], None)
    options = evaluate.Options(comet=True, num_beams=1)
    servable = types.SimpleNamespace(num_beams=1)
    scoring._evaluate(Task(), servable, test_set, options)
    common = {"truncate": True, "more": True}
    assert asked == [
        (2, {**common, "comet": False}),
        (3, {**common, "comet": True}),
    ]
