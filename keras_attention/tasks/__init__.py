"""What can be learned: one module a task, on the contract of `task.Task`."""

import importlib

from keras_attention import suggestions
from keras_attention.tasks.task import Evaluation, Task, TestSet

__all__ = ["Evaluation", "Task", "TestSet", "get"]

_CLASSES = {
    "translation": "Translation",
    "language_modelling": "LanguageModelling",
    "classification": "Classification",
    "entailment": "Entailment",
    "image_classification": "ImageClassification",
    "question_answering": "QuestionAnswering",
}


def get(name: str) -> Task:
    """The task of a name, which the catalogue of models gives.

    Raises:
        ValueError: If there is no such task.
    """
    if name not in _CLASSES:
        raise ValueError(
            f"Expected a task: one of {', '.join(_CLASSES)}. "
            f"Received: {name!r}{suggestions.closest(name, _CLASSES)}"
        )
    module = importlib.import_module(f"{__name__}.{name}")
    return getattr(module, _CLASSES[name])()
