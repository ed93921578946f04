"""Small tools under the import path of Intel's Coach. The tools are defined in ``rl_coach.utilities``."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.utilities.dynamic_import import (
    dynamic_import,
    dynamic_import_and_instantiate_module_from_params,
    dynamic_import_from_full_path,
    get_all_subclasses,
    import_file,
    list_all_classes_in_module,
    public_attributes,
    short_dynamic_import,
)
from rl_coach.utilities.errors import (
    CallbackError,
    CheckpointError,
    CoachError,
    CoachErrors,
    LostPartError,
    TrainingError,
    choose_from,
    did_you_mean,
    nearest,
)
from rl_coach.utilities.sequences import (
    call_method_for_all,
    force_list,
    last_sample,
    set_member_values_for_all,
    squeeze_list,
    stack_observation,
    switch_axes_order,
)
from rl_coach.utilities.signals import LazyArray, Signal
from rl_coach.utilities.system import (
    ProgressBar,
    ReaderWriterLock,
    SharedMemoryScratchPad,
    Timer,
    break_file_path,
    cmd_line_run,
    get_base_dir,
    get_latest_checkpoint,
    get_open_port,
    killed_processes,
    list_all_presets,
    path_is_valid_dir,
    program,
    set_cpu,
    set_gpu,
    start_shell_command_and_wait,
    threaded_cmd_line_run,
    timeout,
)
from rl_coach.utilities.text import (
    convert_to_ascii,
    indent_string,
    is_empty,
    lower_under_to_upper,
    parse_bool,
    parse_int,
    remove_suffix,
)

eps = np.finfo(np.float32).eps


class DictToClass:
    """An object with the items of a dict as attributes."""

    def __init__(self, data: dict[str, Any]):
        vars(self).update(data)


def ClassToDict(x: Any) -> dict[str, Any]:
    """The attributes of an object, without names that start with two underscores."""
    return {name: value for name, value in vars(x).items() if not name.startswith("__")}


__all__ = [
    "break_file_path", "call_method_for_all", "CallbackError", "CheckpointError", "choose_from", "ClassToDict",
    "cmd_line_run", "CoachError", "CoachErrors", "convert_to_ascii", "DictToClass", "did_you_mean",
    "dynamic_import", "dynamic_import_and_instantiate_module_from_params", "dynamic_import_from_full_path", "eps",
    "force_list", "get_all_subclasses", "get_base_dir", "get_latest_checkpoint", "get_open_port", "import_file",
    "indent_string", "is_empty", "killed_processes", "last_sample", "LazyArray", "list_all_classes_in_module",
    "list_all_presets", "LostPartError", "lower_under_to_upper", "nearest", "parse_bool", "parse_int",
    "path_is_valid_dir", "program", "ProgressBar", "public_attributes", "ReaderWriterLock", "remove_suffix",
    "set_cpu", "set_gpu", "set_member_values_for_all", "SharedMemoryScratchPad", "short_dynamic_import", "Signal",
    "squeeze_list", "stack_observation", "start_shell_command_and_wait", "switch_axes_order",
    "threaded_cmd_line_run", "timeout", "Timer", "TrainingError",
]  # fmt: skip
