"""``coach export``, ``coach fetch`` and ``coach push``: write, get and upload trained policies."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import tempfile
from typing import Any, Callable, Sequence, TypeVar

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import preset_catalogue
from rl_coach.installation import is_installed, missing_package
from rl_coach.policy import export as policy_export
from rl_coach.policy import files as policy_files
from rl_coach.utilities.safe_reading import read_json
from rl_coach.utilities.system import shell_command
from rl_coach.utilities.user_code import in_one_line
from rl_coach.utils import CoachError, did_you_mean

INDEX_FILE = "policies.json"
_ON_THE_HUB = re.compile(r"[\w.-]+/[\w.-]+")
_FILES = (policy_files.POLICY_FILE, policy_files.ARRAYS_FILE, policy_files.MODEL_FILE)
_PACKAGE = "huggingface_hub"
_T = TypeVar("_T")


def export(arguments: Sequence[str]) -> None:
    """``coach export``: write a trained policy into a new folder.

    :param arguments: the arguments after ``export``
    :raises CoachError: if there is no policy, or the folder cannot be written
    """
    args = command_line.parser_of("export").parse_args(arguments)
    as_frozen_graph = args.format == command_line.FROZEN_GRAPH
    policy_export.export(args.experiment, args.output, args.agent, as_frozen_graph=as_frozen_graph)
    print(f"exported to {args.output}; {os.path.join(args.output, policy_export.README_FILE)} shows how to use it")


def fetch(arguments: Sequence[str]) -> None:
    """``coach fetch``: write a trained policy into a new folder, or list the trained policies.

    :param arguments: the arguments after ``fetch``
    :raises CoachError: if the policy does not exist or is damaged, or the folder cannot be written
    """
    args = command_line.parser_of("fetch").parse_args(arguments)
    known = index()
    if not args.name:
        print("\n".join(_lines(known)))
        return
    name = next((one for one in known if one.lower() == args.name.lower()), args.name)
    source, about = _source(name, known)
    output = args.output or f"{name.rpartition('/')[2]}_policy"
    policy_export.export(source, output)
    print(f"{name}: {about}")
    print(f"written to {output}; {output}/{policy_export.README_FILE} shows how to use it")


def push(arguments: Sequence[str]) -> None:
    """``coach push``: upload a trained policy to a repository of the Hub, with a model card.

    :param arguments: the arguments after ``push``
    :raises CoachError: if there is no policy, the policy is damaged, or the Hub refuses the upload
    """
    args = command_line.parser_of("push").parse_args(arguments)
    if not _ON_THE_HUB.fullmatch(args.repository):
        raise CoachError(f"'{args.repository}' does not have the Hub's form OWNER/NAME")
    _require_package()
    with tempfile.TemporaryDirectory() as directory:
        folder = policy_export.export(args.policy, pathlib.Path(directory) / args.repository.rpartition("/")[2])
        (folder / policy_export.README_FILE).write_text(model_card(folder), encoding="utf-8")
        url = _asking_the_hub(lambda: _upload(folder, args.repository, args.private))
    print(f"uploaded to {url}")
    print(f"get it with: {shell_command('coach', 'fetch', args.repository)}")


def policies_directory() -> pathlib.Path:
    """The directory of the policies that come with Coach. It contains ``policies.json`` and a folder for each
    policy."""
    return preset_catalogue.preset_directory() / "policies"


def index() -> dict[str, dict[str, Any]]:
    """Facts about the trained policies of tuned presets.

    :return: a dict for each preset: ``run``, the training; ``mean_reward`` over ``episodes`` episodes;
        ``sha256`` of ``policy.json``; ``repository`` and ``revision`` if the policy is on the Hub
    :raises CoachError: if ``policies.json`` is damaged
    """
    file = policies_directory() / INDEX_FILE
    try:
        found = read_json(file)
        if all(_is_sound(entry) for entry in found.values()):
            return found
    except CoachError:
        raise
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        pass
    raise CoachError(f"'{file}' is damaged: install Coach again")


def _lines(known: dict[str, dict[str, Any]]) -> list[str]:
    rows = [("policy", "mean reward", "episodes", "trained with")]
    for name, entry in known.items():
        command = re.sub(r"^coach -p \S+ ", "", entry["run"]["command"])
        rows.append((name, f"{entry['mean_reward']:,.5g}", str(entry["episodes"]), command))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        f"{name:<{widths[0]}}  {reward:>{widths[1]}}  {episodes:>{widths[2]}}  {command}"
        for name, reward, episodes, command in rows
    ]


def _is_sound(entry: dict[str, Any]) -> bool:
    texts = ("sha256", *(("repository", "revision") if "repository" in entry else ()))
    return all(isinstance(entry[name], str) for name in texts) and bool(_about(entry))


def _about(entry: dict[str, Any]) -> str:
    return (
        f"mean reward {entry['mean_reward']:,.5g} in {entry['episodes']} episodes, trained by {entry['run']['command']}"
    )


def _source(name: str, known: dict[str, dict[str, Any]]) -> tuple[pathlib.Path, str]:
    """The folder of a policy, and a text about the policy."""
    if name in known:
        return _folder_of(name, known[name]), _about(known[name])
    if name in (*preset_catalogue.list_tuned_presets(), *preset_catalogue.list_all_presets()):
        command = shell_command("coach", "-p", name)
        raise CoachError(f"there is no trained policy of {name} (coach fetch lists all); train one with: {command}")
    if _ON_THE_HUB.fullmatch(name) and not name.startswith("tuned/"):
        return _download(name, None), f"from https://huggingface.co/{name}"
    raise CoachError(f"there is no trained policy '{name}'{did_you_mean(name, known)} (coach fetch lists all)")


def _folder_of(name: str, entry: dict[str, Any]) -> pathlib.Path:
    if "repository" in entry:
        folder = _download(entry["repository"], entry["revision"])
    else:
        folder = policies_directory() / name.rpartition("/")[2]
    try:
        digest = hashlib.sha256((folder / policy_files.POLICY_FILE).read_bytes()).hexdigest()
    except OSError as error:
        raise CoachError(f"the policy of {name} in '{folder}' cannot be read: {error.strerror}") from None
    if digest != entry["sha256"]:
        again = "delete the folder and try again" if "repository" in entry else "install Coach again"
        raise CoachError(f"the policy of {name} in '{folder}' was changed: {again}")
    return folder


def _download(repository: str, revision: str | None) -> pathlib.Path:
    """Download a repository of the Hub. :return: its folder in the Hub's cache"""
    _require_package()
    from huggingface_hub import snapshot_download

    return pathlib.Path(
        _asking_the_hub(lambda: snapshot_download(repository, revision=revision, allow_patterns=list(_FILES)))
    )


def _upload(folder: pathlib.Path, repository: str, is_private: bool) -> str:
    from huggingface_hub import HfApi

    hub = HfApi()
    url = hub.create_repo(repository, private=is_private, exist_ok=True)
    hub.upload_folder(repo_id=repository, folder_path=folder, commit_message="Upload a policy trained with Coach")
    return str(url)


def model_card(folder: pathlib.Path) -> str:
    """The README of an exported policy with metadata for the Hub (a model card). :param folder: the policy's folder"""
    from huggingface_hub import EvalResult, ModelCardData

    document, _ = policy_files.read(folder)
    about, name = document["about"], folder.name
    preset, reward = str(about.get("preset") or "unknown"), about.get("evaluation_reward")
    result = EvalResult(
        task_type="reinforcement-learning", dataset_type=preset, dataset_name=preset, metric_type="mean_reward",
        metric_value=reward,
    )  # fmt: skip
    data = ModelCardData(
        library_name="coach",
        tags=["reinforcement-learning", "coach", preset],
        model_name=name,
        eval_results=None if reward is None else [result],
    )
    text = (folder / policy_export.README_FILE).read_text(encoding="utf-8")
    return f"---\n{data.to_yaml()}\n---\n{text}"


def _require_package() -> None:
    if not is_installed(_PACKAGE):
        raise CoachError(missing_package(ModuleNotFoundError(name=_PACKAGE)))


def _asking_the_hub(ask: Callable[[], _T]) -> _T:
    """Call a function that uses the Hub. An error of the Hub's client becomes a ``CoachError``."""
    try:
        return ask()
    except Exception as error:
        raise CoachError(f"Hugging Face Hub: {in_one_line(error)}") from error
