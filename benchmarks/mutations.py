"""Mutation testing: ``python -m benchmarks.mutations [--only clock.py] [--folder rl_coach/agents/core]``.

A mutation is a small mistake in a copy of the repository. Its tests must fail in this copy. If they pass, a test is
missing.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
CORE = "rl_coach/agents/core"
LEAST_CAUGHT = 0.9


@dataclass(frozen=True)
class Mutation:
    """A mistake.

    :param file: name of the file in ``folder``
    :param old: a text that occurs once in the file
    :param new: the text that replaces ``old``
    :param tests: arguments of pytest: files, and ``-k`` with a name
    :param folder: path of the folder in the repository
    """

    file: str
    old: str
    new: str
    tests: str
    folder: str = CORE

    @property
    def path(self) -> pathlib.Path:
        """The path of the file in the repository."""
        return pathlib.Path(self.folder) / self.file

    def apply(self, directory: pathlib.Path) -> str:
        """Make the mistake in a copy of the repository. :return: the text of the file before the change"""
        path = directory / self.path
        before = path.read_text("utf-8")
        if before.count(self.old) != 1:
            raise SystemExit(f"{self.path} has {before.count(self.old)} times, not once: {self.old}")
        path.write_text(before.replace(self.old, self.new), "utf-8")
        return before


CLOCK, EPISODES, SIGNALS, UPDATES = (
    f"tests/agents/core/test_{name}.py" for name in ("clock", "actors", "signals", "update_loop")
)
COLUMNS = "tests/agents/core/test_column_actors.py"
REMEMBER = "tests/agents/test_parts_that_remember.py"
EVALUATION = "tests/agents/core/test_evaluation_in_progress.py"
LEVELS = "tests/environments/test_vector_levels.py"
STATE = "tests/utilities/test_episode_state.py"
STACKS = "tests/filters/observation/test_observation_stacking_filter.py"
EXPERIENCE = "tests/agents/core/test_experience.py"
STEPS = "tests/environments/test_step_columns.py"
WAITING = f"{LEVELS} -k wait"
BETWEEN = f"{COLUMNS} -k plays_in_between"
SEQUENCES = "tests/agents/test_recurrent_sequences.py -k cut_into_sequences"

MUTATIONS = (
    Mutation("clock.py", "phases, rest = 1, 0", "phases, rest = 1, rest", CLOCK),
    Mutation("clock.py", "self.last_phase >= period.num_steps and", "self.last_phase > period.num_steps and", CLOCK),
    Mutation("clock.py", "return -(-self.steps_at_once // max(1, period.num_steps))",
             "return self.steps_at_once // max(1, period.num_steps)", CLOCK),
    Mutation("clock.py", "self.last_target_update + 1", "self.last_target_update", CLOCK),
    Mutation("clock.py", "due_in = math.ceil(period.num_steps) - (self.updates - self.last_target_update)",
             "due_in = math.ceil(period.num_steps)", CLOCK),
    Mutation("clock.py", "self.last_target_update = now - passed", "self.last_target_update = now", CLOCK),
    Mutation("actors.py", "self._actors[self.index].leave()", "pass", EPISODES),
    Mutation("actors.py", "in reversed(list(enumerate(episodes)))", "in list(enumerate(episodes))", EPISODES),
    Mutation("actor.py", "part.for_another_actor() for part in parts", "part for part in parts", REMEMBER),
    Mutation("actor.py", "part.for_evaluation() for part in parts", "part for part in parts", REMEMBER),
    Mutation("actor.py", "vars(self._agent).update(self.episode.attributes)", "pass", REMEMBER),
    Mutation("actor.py", "self._suspended = [(part, part", "[(part, part", REMEMBER),
    Mutation("actor.py", "self.episode.recurrent_states = {", "_ = {", COLUMNS),
    Mutation("actor.py", "if episode.acted_from:", "if not episode.acted_from:", COLUMNS),
    Mutation("evaluation.py", "self._training_actor.enter()", "pass", EVALUATION),
    Mutation("evaluation.py", "vars(agent).update({name: before", "dict({name: before", EVALUATION),
    Mutation("episode_attributes.py", "if users_classes(type(agent)) and", "if not users_classes(type(agent)) and",
             REMEMBER),
    Mutation("episode_attributes.py", 'return "__init__" in names and', "return False and", REMEMBER),
    Mutation("column_actors.py", "self.states[name] = self.states[name].copy()", "pass",
             f"{COLUMNS} -k rollout_leads"),
    Mutation("column_actors.py", "            self.states, self._actions, shaped, over,",
             "            self.states, self._actions, rewards, over,", COLUMNS),
    Mutation("column_actors.py", "self.steps[indices] = 0", "pass", COLUMNS),
    Mutation("column_actors.py", "over = step.terminated | step.truncated", "over = step.terminated", COLUMNS),
    Mutation("column_actors.py", "shaped, over, next_states, step.terminated, info",
             "shaped, over, next_states, over, info", COLUMNS),
    Mutation("column_actors.py", "episode.steps = int(self.steps[index])", "episode.steps = 0", COLUMNS),
    Mutation("column_actors.py", "self.total_rewards[rows] += rewards[rows]",
             "self.total_rewards += rewards[0]", COLUMNS),
    Mutation("rollout.py", "over.ravel()[last] = True", "pass", COLUMNS),
    Mutation("rollout.py", "parts.append(rows[actor][begins[actor] : end])",
             "parts.append(rows[actor][:end])", COLUMNS),
    Mutation("rollout.py", "next_values[ends] = following", "pass", COLUMNS),
    Mutation("rollout.py", "found[self.order] = column", "found[:] = column", COLUMNS),
    Mutation("rollout.py", "self._length += len(step) if acting is None else len(acting)",
             "self._length += len(step) - 1", COLUMNS),
    Mutation("e_greedy.py", "if drawn < epsilon:", "if drawn > epsilon:", COLUMNS,
             "rl_coach/exploration_policies"),
    Mutation("signals.py", "reward >= success_threshold", "reward > success_threshold", SIGNALS),
    Mutation("signals.py", "done, self.evaluation = self.evaluation, Evaluation()", "done = self.evaluation", SIGNALS),
    Mutation("signals.py", "        if self._are_targets_updated:",
             "        if not self._are_targets_updated:", SIGNALS),
    Mutation("update_loop.py", "count = min(left, most)",
             "count = left", UPDATES),
    Mutation("update_loop.py", "np.abs(result.errors)", "result.errors", UPDATES),
    Mutation("update_loop.py", "if not are_updated:", "if are_updated:", UPDATES),
    Mutation("update_loop.py", "[number % period == 0 for number in numbers]",
             "[number % period == 1 for number in numbers]", UPDATES),
    Mutation("overrides.py", 'replaced_beside={"make_update_rule"}', "replaced_beside=()",
             "tests/agents/core/test_overrides.py"),
    Mutation("sequences.py", 'flat["weights"] * self._is_present.ravel()', 'flat["weights"]', SEQUENCES),
    Mutation("sequences.py", "before + 1", "before", SEQUENCES),
    Mutation("experience.py", "- episode.num_stored < algorithm.n_step", "- episode.num_stored <= algorithm.n_step",
             "tests/agents/test_n_step.py -k what_is_stored"),
    Mutation("actors.py", "actor.episode.attributes = copy.deepcopy(own)", "actor.episode.attributes = own", EPISODES),
    Mutation("actors.py", "actor.input_filter.set_episode_state(episode",
             "self._agent.input_filter.set_episode_state(episode", f"{COLUMNS} -k stacks"),
    Mutation("actors.py", "= actor.input_filter.episode_state()",
             "= self._agent.input_filter.episode_state()", f"{COLUMNS} -k stacks"),
    Mutation("column_actors.py", "self._acting[over[self._acting]]", "np.flatnonzero(over[self._acting])", LEVELS),
    Mutation("column_actors.py", "self._actions[acting] = actions", "self._actions[: len(acting)] = actions", LEVELS),
    Mutation("column_actors.py", "self._discounts[indices] = 1.0", "self._discounts[:] = 1.0", f"{COLUMNS} -k stacks"),
    Mutation("column_actors.py", "stacks.begin(beginning, column)", "stacks.begin(np.arange(len(column)), column)",
             f"{COLUMNS} -k stacks"),
    Mutation("episode_state.py", "copy.deepcopy(getattr(self, name))", "getattr(self, name)", STATE,
             "rl_coach/utilities"),
    Mutation("episode_state.py", "keeps_no_episode_state else self._copied((Space,))",
             "keeps_no_episode_state else self._copied(_OF_THE_AGENT)", STATE,
             "rl_coach/utilities"),
    Mutation("vector_level_manager.py", "self.environment_steps += actors.num_acting",
             "self.environment_steps += self._copies.num_copies", LEVELS, "rl_coach"),
    Mutation("vector_level_manager.py", "self.due = dict(episode.due)", "self.due = {}", f"{COLUMNS} -k between_two",
             "rl_coach"),
    Mutation("observation_stacking_filter.py", "for frame in frames:", "for frame in frames[-1:]:", STACKS,
             "rl_coach/filters/observation"),
    Mutation("observation_stacking_filter.py", "rows = [frames or known for", "rows = [known for", STACKS,
             "rl_coach/filters/observation"),
    Mutation("e_greedy.py", "None if action_masks is None else action_masks[row]",
             "None if action_masks is None else action_masks[0]",
             "tests/exploration_policies/test_discrete_policies.py", "rl_coach/exploration_policies"),
    Mutation("schedules.py", "self.advance(count)", "self.step()", "tests/test_schedules.py", "rl_coach"),
    Mutation("filter.py", "member.for_evaluation() for path", "member.for_another_actor() for path", STATE,
             "rl_coach/filters"),
    Mutation("evaluation.py", "one.set_state(state)", "pass", EVALUATION),
    Mutation("evaluation.py", "            stream.bit_generator.state = state\n", "            pass\n", EVALUATION),
    Mutation("evaluation.py", "agent.signals.take_up_samples(self._samples)", "pass", EVALUATION),
    Mutation("actors.py", "        self.ask_together({})", "        pass", EPISODES),
    Mutation("actors.py", "return self._predictions[self.index]",
             "return next(iter(self._predictions.values()))", EPISODES),
    Mutation("actor.py", "= before.incoming_goal, before.is_tested", "= None, before.is_tested", EPISODES),
    Mutation("experience.py", "self._algorithm.discount ** buffer.length()", "self._algorithm.discount", EXPERIENCE),
    Mutation("experience.py", "last.game_over = True", "pass", EXPERIENCE),
    Mutation("experience.py", "transitions if acting is None else transitions[acting]", "transitions", WAITING),
    Mutation("finite_watch.py", "for value in (rewards, *floats)", "for value in floats",
             "tests/agents/core/test_finite_watch.py"),
    Mutation("column_actors.py", "episode.return_before = float(self._returns[index])", "pass", BETWEEN),
    Mutation("column_actors.py", "self._discounts[rows] * shaped[rows]", "shaped[rows]", BETWEEN),
    Mutation("column_actors.py", "self._discounts[rows] *= agent.ap.algorithm.discount", "pass", BETWEEN),
    Mutation("column_actors.py", "self.total_shaped_rewards[rows] += shaped[rows]",
             "self.total_shaped_rewards[rows] += rewards[rows]", f"{COLUMNS} -k filters_and_probabilities"),
    Mutation("rollout.py", "begins[actor] = end", "pass", f"{COLUMNS} -k rollout_leads"),
    Mutation("rollout.py", "in plain_data.in_order(state):", "in list(plain_data.in_order(state))[1:]:",
             f"{COLUMNS} -k continues_exactly"),
    Mutation("vector_level_manager.py", "self.due |= dict.fromkeys(ended, False)", "pass", WAITING, "rl_coach"),
    Mutation("step_columns.py", "np.bool_) & ~terminated", "np.bool_)", STEPS, "rl_coach/environments"),
    Mutation("step_columns.py", "absent = ~present", "absent = present", STEPS, "rl_coach/environments"),
    Mutation("step_columns.py", "goals, self.terminated.tolist())", "goals, ends.tolist())", STEPS,
             "rl_coach/environments"),
)  # fmt: skip


def copy_of_the_repository(directory: pathlib.Path) -> None:
    """Copy the folders and files that the tests need."""
    for name in ("rl_coach", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", directory)
    (directory / "presets").symlink_to(directory / "rl_coach" / "presets")


def pass_tests(directory: pathlib.Path, tests: str) -> bool:
    """Run tests in a copy of the repository. :return: True if all pass :raises SystemExit: if pytest cannot run them"""
    environment = {
        **os.environ,
        "PYTHONPATH": str(directory),
        "COACH_TEST_FRAMEWORK": "jax",
        "KERAS_BACKEND": "jax",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests.split()]
    result = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    if result.returncode not in (0, 1):
        raise SystemExit(f"{tests} cannot be run: {result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result.returncode == 0


def main() -> int:
    """Make each mistake, one after the other, and run its tests.

    :return: the exit code: 1 if the tests catch less than ``LEAST_CAUGHT`` of the mutations
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__)
    parser.add_argument("--only", default="", metavar="FILE", help="the mutations of one file")
    parser.add_argument(
        "--folder", choices=sorted({mutation.folder for mutation in MUTATIONS}), help="the mutations of one folder"
    )
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if options.only in m.file and options.folder in (None, m.folder)]
    caught = 0
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        copy_of_the_repository(directory)
        for tests in dict.fromkeys(mutation.tests for mutation in chosen):
            if not pass_tests(directory, tests):
                raise SystemExit(f"{tests} fails without any mutation")
        for mutation in chosen:
            before = mutation.apply(directory)
            is_caught = not pass_tests(directory, mutation.tests)
            (directory / mutation.path).write_text(before, "utf-8")
            caught += is_caught
            print(f"{'caught  ' if is_caught else 'SURVIVED'} {mutation.path}: {mutation.old.strip()}", flush=True)
    print(f"{caught} of {len(chosen)} mutations are caught")
    return 0 if caught >= LEAST_CAUGHT * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
