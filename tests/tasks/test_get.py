"""Tasks by their names: those of the catalogue, and no others."""

import pytest

from keras_attention import tasks
from keras_attention.models import catalog


@pytest.mark.parametrize(
    "name", sorted({entry.task for entry in catalog.CATALOG.values()})
)
def test_every_task_of_the_catalogue_is_there(name):
    task = tasks.get(name)
    assert isinstance(task, tasks.Task) and task.name == name


# A module of `tasks` that is no task; one that is not there.
@pytest.mark.parametrize("name", ["models", "x"])
def test_another_name_is_refused(name):
    with pytest.raises(ValueError, match=f"translation, .*Received: '{name}'"):
        tasks.get(name)
