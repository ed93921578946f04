"""``coach port``: convert a training script of Stable-Baselines3 to a preset, or to a script with ``make_agent``.

The script is parsed and never run. Settings that the script does not set get the defaults of Stable-Baselines3.
"""

from __future__ import annotations

import ast
import json
import math
import pathlib
from dataclasses import dataclass
from typing import Any, Iterator, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line.init import write_new
from rl_coach.command_line.sb3_script import Linear, Script
from rl_coach.utilities.safe_reading import read_text
from rl_coach.utilities.system import shell_command
from rl_coach.utils import CoachError

_ON_POLICY = {"learning_rate": 3e-4, "n_steps": 2048, "batch_size": 64, "gamma": 0.99, "gae_lambda": 0.95}
_PPO = {**_ON_POLICY, "n_epochs": 10, "clip_range": 0.2, "clip_range_vf": None, "ent_coef": 0.0, "vf_coef": 0.5,
        "max_grad_norm": 0.5, "target_kl": None}  # fmt: skip
_REPLAY = {"learning_rate": 3e-4, "buffer_size": 1_000_000, "learning_starts": 100, "batch_size": 256, "tau": 0.005,
           "gamma": 0.99, "train_freq": 1, "gradient_steps": 1, "n_steps": 1}  # fmt: skip
_DQN = {**_REPLAY, "learning_rate": 1e-4, "batch_size": 32, "tau": 1.0, "train_freq": 4,
        "target_update_interval": 10_000, "exploration_fraction": 0.1, "exploration_initial_eps": 1.0,
        "exploration_final_eps": 0.05, "max_grad_norm": 10.0}  # fmt: skip
_SAC = {**_REPLAY, "ent_coef": "auto", "target_entropy": "auto", "target_update_interval": 1}
_DDPG = {**_REPLAY, "learning_rate": 1e-3, "action_noise": None}


@dataclass(frozen=True)
class _Algorithm:
    """An algorithm of Stable-Baselines3, and the same algorithm in Coach.

    :param module: the module of the agent's parameters in Coach
    :param make: the call that makes these parameters
    :param networks: the networks in Coach that get the learning rate and the batch size
    :param defaults: the settings of Stable-Baselines3 with their default values
    :param layers: the default sizes of the layers in Stable-Baselines3
    :param activation: the default activation function in Stable-Baselines3
    """

    module: str
    make: str
    networks: tuple[str, ...]
    defaults: dict[str, Any]
    layers: tuple[int, ...] = (64, 64)
    activation: str = "relu"

    @property
    def is_on_policy(self) -> bool:
        return "gae_lambda" in self.defaults


_SOFT = ("soft_actor_critic_agent", "SoftActorCriticAgentParameters(use_value_network=False)", ("policy", "q"))
_ALGORITHMS = {
    "PPO": _Algorithm("clipped_ppo_agent", "ClippedPPOAgentParameters()", ("main",), _PPO, activation="tanh"),
    "RecurrentPPO": _Algorithm(
        "clipped_ppo_agent", "ClippedPPOAgentParameters()", ("main",), {**_PPO, "n_steps": 128, "batch_size": 128},
        activation="tanh",
    ),
    "A2C": _Algorithm(
        "actor_critic_agent", "ActorCriticAgentParameters()", ("main",),
        {"learning_rate": 7e-4, "n_steps": 5, "gamma": 0.99, "gae_lambda": 1.0, "ent_coef": 0.0, "vf_coef": 0.5,
         "max_grad_norm": 0.5, "rms_prop_eps": 1e-5, "use_rms_prop": True},
        activation="tanh",
    ),
    "TRPO": _Algorithm(
        "trpo_agent", "TRPOAgentParameters()", ("critic",),
        {**_ON_POLICY, "learning_rate": 1e-3, "batch_size": 128, "cg_max_steps": 15, "cg_damping": 0.1,
         "line_search_shrinking_factor": 0.8, "line_search_max_iter": 10, "n_critic_updates": 10, "target_kl": 0.01},
        activation="tanh",
    ),
    "DQN": _Algorithm("dqn_agent", "DQNAgentParameters()", ("main",), _DQN),
    "QRDQN": _Algorithm(
        "qr_dqn_agent", "QuantileRegressionDQNAgentParameters()", ("main",),
        {**_DQN, "learning_rate": 5e-5, "exploration_fraction": 0.005, "exploration_final_eps": 0.01,
         "max_grad_norm": None},
    ),
    "SAC": _Algorithm(*_SOFT, _SAC, (256, 256)),
    "TQC": _Algorithm(*_SOFT, {**_SAC, "top_quantiles_to_drop_per_net": 2}, (256, 256)),
    "DDPG": _Algorithm("ddpg_agent", "DDPGAgentParameters()", ("critic", "actor"), _DDPG, (400, 300)),
    "TD3": _Algorithm(
        "td3_agent", "TD3AgentParameters()", ("critic", "actor"),
        {**_DDPG, "policy_delay": 2, "target_policy_noise": 0.2, "target_noise_clip": 0.5}, (400, 300),
    ),
}  # fmt: skip
_POSITIONAL = ("policy", "env", "learning_rate")
_TO_ALGORITHM = {
    "gamma": "discount",
    "gae_lambda": "gae_lambda",
    "n_epochs": "optimization_epochs",
    "clip_range_vf": "clip_value_using_epsilon",
    "tau": "rate_for_copying_weights_to_target",
    "cg_max_steps": "conjugate_gradient_iterations",
    "cg_damping": "conjugate_gradient_damping",
    "line_search_shrinking_factor": "line_search_shortening",
    "line_search_max_iter": "line_search_attempts",
    "n_critic_updates": "value_epochs",
    "policy_delay": "update_policy_every_x_episode_steps",
    "target_policy_noise": "policy_noise",
    "target_noise_clip": "noise_clipping",
    "top_quantiles_to_drop_per_net": "top_quantiles_to_drop",
}
"""Settings of Stable-Baselines3, and the names of the same settings in ``agent_params.algorithm``."""
_ELSEWHERE = {"verbose", "device", "seed", "tensorboard_log", "policy_kwargs", "env", "policy", "stats_window_size",
              "_init_setup_model", "optimize_memory_usage", "monitor_wrapper"}  # fmt: skip
"""Arguments that are not settings of the algorithm. Other code converts them, or they have no effect on training."""
_OTHERS = {
    "register": "use the class itself as the level, module:Class",
    "evaluate_policy": "coach evaluate RUN evaluates a run",
    "load": "coach import sb3 FILE reads a policy of Stable-Baselines3",
}


@dataclass
class _Environment:
    """The environment of a script.

    :param level: the level for Coach
    :param copies: the number of copies
    :param is_atari: True if the script uses ``make_atari_env``
    :param clip: the largest normalised observation; 0 if the script does not normalise observations
    :param is_async: True if the copies run in separate processes
    :param stacked: number of stacked frames; 0 if frames are not stacked
    :param settings: the source text of further arguments of the environment
    """

    level: str = ""
    copies: int = 1
    is_atari: bool = False
    clip: float = 0.0
    is_async: bool = False
    stacked: int = 0
    settings: str = ""


def _environment(script: Script, node: Any, file: pathlib.Path) -> _Environment:
    """The environment that an expression makes."""
    node = script.resolve(node)
    name = script.called(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _Environment(node.value)
    if isinstance(node, ast.Lambda):
        return _environment(script, node.body, file)
    if isinstance(getattr(node, "func", node), ast.Name) and getattr(node, "id", name) in script.functions:
        return _of_function(script, node, file)
    if isinstance(node, ast.Name) and node.id in script.classes:
        if script.trains_when_imported:
            script.leave_out(node, f"the class {node.id}: move it to a separate file, because this file trains")
        return _Environment(f"{file}:{node.id}")
    if isinstance(node, (ast.Name, ast.Attribute)) and script.origin(node)[0]:
        return _Environment(":".join(script.origin(node)))
    if isinstance(node, (ast.List, ast.ListComp, ast.BinOp)):
        return _of_several(script, node, file)
    if not isinstance(node, ast.Call):
        script.leave_out(node, f"the environment {ast.unparse(node) if node else ''}".strip())
        return _Environment("CartPole-v1")
    given = script.keywords(node, ("env", "n_envs", "seed") if name.startswith("make_") else ("env",))
    inner = given.pop("env", given.pop("env_id", given.pop("env_fns", given.pop("venv", given.pop("id", None)))))
    if name in ("make", "make_vec_env", "make_atari_env", "Monitor", "DummyVecEnv", "SubprocVecEnv", "VecNormalize",
                "VecFrameStack", "VecTransposeImage", "VecMonitor"):  # fmt: skip
        made = _environment(script, inner, file)
    elif isinstance(script.resolve(inner), ast.Call):
        script.leave_out(node, f"the wrapper {name}")
        return _environment(script, inner, file)
    else:
        made = _environment(script, node.func, file)
        made.settings = _dictionary(given)
        return made
    made.is_atari |= name == "make_atari_env"
    made.is_async |= "SubprocVecEnv" in (name, ast.unparse(given.pop("vec_env_cls", ast.Constant(None))).split(".")[-1])
    if "n_envs" in given:
        made.copies = script.known("n_envs", given.pop("n_envs"), 1)
    if name == "VecNormalize":
        clip = script.known("clip_obs", given.pop("clip_obs", ast.Constant(10.0)), 10.0)
        made.clip = clip if script.known("norm_obs", given.pop("norm_obs", ast.Constant(True)), True) else 0.0
        if script.known("norm_reward", given.pop("norm_reward", ast.Constant(True)), True):
            script.leave_out(node, "norm_reward of VecNormalize, which divides rewards by the deviation of returns")
    if name == "VecFrameStack":
        made.stacked = script.known("n_stack", given.pop("n_stack", ast.Constant(4)), 4)
    if "env_kwargs" in given:
        made.settings = ast.unparse(script.resolve(given.pop("env_kwargs")))
    elif name == "make" and given:
        made.settings = _dictionary({key: one for key, one in given.items() if key != "render_mode"})
        given = {}
    for key, one in given.items():
        if key not in ("seed", "monitor_dir", "gamma", "training", "start_index", "filename"):
            script.leave_out(one, f"{key} of {name}")
    return made


def _dictionary(given: dict[str, ast.expr]) -> str:
    """The source text of a dictionary with these arguments; empty without arguments."""
    return f"dict({', '.join(f'{key}={ast.unparse(one)}' for key, one in given.items())})" if given else ""


def _of_function(script: Script, node: Any, file: pathlib.Path) -> _Environment:
    """The environment that a function of the script makes with ``gym.make``."""
    function = script.functions[node.id if isinstance(node, ast.Name) else script.called(node)]
    made = next(
        (one for one in ast.walk(function) if ast.unparse(getattr(one, "func", one)).endswith("gym.make")), None
    )
    if made is None:
        script.leave_out(function, f"the environment of {function.name}")
        return _Environment("CartPole-v1")
    if isinstance(node, ast.Call):
        for parameter, given in zip(function.args.args, node.args):
            script.values.setdefault(parameter.arg, []).append((0, script.resolve(given)))
    return _environment(script, made, file)


def _of_several(script: Script, node: Any, file: pathlib.Path) -> _Environment:
    """The environment of ``[make, make]``, ``[make] * 4`` or ``[make for i in range(4)]``."""
    if isinstance(node, ast.BinOp):
        made, number = _environment(script, node.left, file), node.right
    elif isinstance(node, ast.List):
        made, number = _environment(script, node.elts[0] if node.elts else None, file), ast.Constant(len(node.elts))
    else:
        over = script.resolve(node.generators[0].iter)
        is_range = script.called(over) == "range" and len(over.args) == 1
        made, number = _environment(script, node.elt, file), over.args[0] if is_range else over
    made.copies = script.known("the number of environments", number, 1)
    return made


def run(arguments: Sequence[str]) -> None:
    """Run ``coach port``.

    :param arguments: the arguments after ``port``
    :raises CoachError: if the script cannot be read, trains nothing, or the output exists
    """
    args = command_line.parser_of("port").parse_args(arguments)
    file = pathlib.Path(args.script)
    try:
        script = Script(read_text(file), args.script)
    except FileNotFoundError as error:
        raise CoachError(str(error)) from None
    output = pathlib.Path(args.output or file.with_name(f"{file.stem}_{'coach' if args.library else 'preset'}.py").name)
    try:
        text, flags = _Port(script, file).text(args.library)
    except RecursionError:
        raise CoachError(f"'{file}' cannot be read: its values refer to themselves") from None
    write_new({output: text})
    for line, what in sorted(set(script.left_out)):
        print(f"not converted: {args.script}:{line}: {what}")
    program = ("python",) if args.library else ("coach", "-p")
    print(f"train with: {shell_command(*program, str(output))}{'' if args.library else flags}")


class _Port:
    """Converts a script.

    :param file: the script's file, for environments that the script defines
    :raises CoachError: if the script makes no model that Coach can convert
    """

    def __init__(self, script: Script, file: pathlib.Path):
        made = [call for call in script.calls if self._is_model(script, call)]
        if not made:
            names = ", ".join(_ALGORITHMS)
            raise CoachError(f"'{file}' makes no model that Coach can convert; Coach converts {names}")
        for other in made[1:]:
            script.leave_out(other, f"another model: {ast.unparse(other.func)}")
        self.script, self.name = script, script.called(made[0])
        self.algorithm = _ALGORITHMS[self.name]
        self.given = script.keywords(made[0], _POSITIONAL)
        self.environment = _environment(script, self.given.get("env"), file)
        policy = script.resolve(self.given.get("policy"))
        self.policy = str(policy.value) if isinstance(policy, ast.Constant) else script.origin(policy)[1]
        if self.policy not in ("MlpPolicy", "CnnPolicy", "MlpLstmPolicy", "CnnLstmPolicy"):
            script.leave_out(policy or made[0], f"the policy {self.policy}: the new networks are as for MlpPolicy")
        self.model = made[0]
        self.callbacks: list[str] = []
        self.total, self.evaluation = self._learning()
        self.imports = {
            ("rl_coach.agents." + self.algorithm.module, self.algorithm.make.partition("(")[0]),
            ("rl_coach.core_types", "EnvironmentSteps"),
            ("rl_coach.core_types", "EnvironmentEpisodes"),
        }
        self.settings = {
            name: script.known(name, self.given[name], otherwise)
            if name in self.given and name != "action_noise"
            else otherwise
            for name, otherwise in self.algorithm.defaults.items()
        }
        for name, node in self.given.items():
            is_off = isinstance(node, ast.Constant) and not node.value
            if name not in {*self.settings, *_ELSEWHERE} and (not is_off or name == "normalize_advantage"):
                script.leave_out(node, f"{name} of {self.name}")
        if self.environment.is_atari and self.environment.stacked != 4:
            frames = self.environment.stacked or 1
            script.leave_out(self.model, f"{frames} frames in an observation: it has 4 frames")
        if self.algorithm.is_on_policy:
            self.rollout = self.settings["n_steps"] * self.environment.copies
            self.total = math.ceil(self.total / self.rollout) * self.rollout
        self._list_others()

    @staticmethod
    def _is_model(script: Script, call: ast.Call) -> bool:
        module, name = script.origin(call.func)
        by_module = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
        is_known = module.startswith(("stable_baselines3", "sb3_contrib")) or (by_module and not module)
        return name in _ALGORITHMS and is_known and len(call.args) + len(call.keywords) > 1

    def _list_others(self) -> None:
        for call in self.script.calls:
            name = self.script.called(call)
            of = getattr(getattr(call.func, "value", None), "id", "")
            if name in _OTHERS and (name != "load" or of in _ALGORITHMS):
                self.script.leave_out(call, f"{name}: {_OTHERS[name]}")

    def _learning(self) -> tuple[int, tuple[int, int]]:
        """The number of training steps, and the schedule of evaluations: the steps between two evaluations, and the
        episodes of an evaluation.
        """
        calls = [call for call in self.script.calls if getattr(call.func, "attr", "") == "learn"]
        if not calls:
            raise CoachError("the script never calls learn")
        for other in calls[1:]:
            self.script.leave_out(other, "learn is called again")
        given = self.script.keywords(calls[0], ("total_timesteps", "callback"))
        total = int(self.script.known("total_timesteps", given.get("total_timesteps", ast.Constant(0)), 100_000))
        evaluation = (max(1, total // 10), 5)
        for node in self._listed(given.get("callback")):
            evaluation = self._callback(node) or evaluation
        for name in given.keys() - {"total_timesteps", "callback", "progress_bar", "log_interval", "tb_log_name"}:
            self.script.leave_out(given[name], f"{name} of learn")
        return total, evaluation

    def _listed(self, node: Any) -> Iterator[Any]:
        """The callbacks in a list or in a ``CallbackList``, or a single callback."""
        node = self.script.resolve(node)
        if self.script.called(node) == "CallbackList":
            node = self.script.resolve(node.args[0])
        for one in node.elts if isinstance(node, ast.List) else [node] if node is not None else []:
            yield self.script.resolve(one)

    def _callback(self, node: Any) -> tuple[int, int] | None:
        """Convert a callback into a callback of Coach, or into a line that names it as not converted.

        :return: the steps between evaluations, and the episodes of an evaluation, of an ``EvalCallback``; None for
            other callbacks
        """
        name, copies = self.script.called(node), self.environment.copies
        given = self.script.keywords(node, ("eval_env",)) if isinstance(node, ast.Call) else {}
        if name == "EvalCallback":
            every = self.script.known("eval_freq", given.get("eval_freq", ast.Constant(10_000)), 10_000)
            episodes = self.script.known("n_eval_episodes", given.get("n_eval_episodes", ast.Constant(5)), 5)
            for key in ("callback_on_new_best", "callback_after_eval"):
                if key in given:
                    self._callback(self.script.resolve(given[key]))
            return int(every) * copies, int(episodes)
        if name == "CheckpointCallback" and "save_freq" in given:
            self.callbacks.append(f"SaveEvery(steps={self.script.known('save_freq', given['save_freq'], 1) * copies})")
        elif name == "StopTrainingOnRewardThreshold" and "reward_threshold" in given:
            reward = self.script.known("reward_threshold", given["reward_threshold"], 0)
            self.callbacks.append(f"StopOnReward(reward={reward})")
        elif not (isinstance(node, ast.Constant) and node.value is None) and name != "ProgressBarCallback":
            self.script.leave_out(node, f"the callback {name or ast.unparse(node)}")
        return None

    # the text

    def text(self, as_library: bool) -> tuple[str, str]:
        """The source text of the new preset or script, and the flags for the command that trains it."""
        agent = [f"agent_params = {self.algorithm.make}", *self._network(), *self._algorithm()]
        environment = self._environment_lines()
        seed = self.script.known("seed", self.given["seed"], None) if "seed" in self.given else None
        steps, heatup = self.total - self._heatup, self._heatup
        every, episodes = self.evaluation
        if as_library:
            by_name = len(environment) == 1 + (self.environment.copies > 1) and not self.environment.is_atari
            made = [f"agent_params, {json.dumps(self.environment.level) if by_name else 'env_params'}"]
            environment = [] if by_name else environment
            made += [f"num_envs={self.environment.copies}"] * (self.environment.copies > 1)
            made += [f"heatup_steps={heatup}"] * bool(heatup) + [f"seed={seed}"] * (seed is not None)
            callback = f", callback=[{', '.join(self.callbacks)}]" if self.callbacks else ""
            end = [f"agent = make_agent({', '.join(made)})", f"agent.learn({steps}, evaluate_every={every}{callback})",
                   f'agent.save("{self.name.lower()}_agent")']  # fmt: skip
            self.imports.add(("rl_coach", "make_agent"))
            schedule: list[str] = []
        else:
            self.imports |= {("rl_coach.graph_managers.basic_rl_graph_manager", "BasicRLGraphManager"),
                             ("rl_coach.graph_managers.graph_manager", "ScheduleParameters")}  # fmt: skip
            schedule = [
                "schedule_params = ScheduleParameters()",
                f"schedule_params.heatup_steps = EnvironmentSteps({heatup})",
                f"schedule_params.improve_steps = EnvironmentSteps({steps})",
                f"schedule_params.steps_between_evaluation_periods = EnvironmentSteps({every})",
                f"schedule_params.evaluation_steps = EnvironmentEpisodes({episodes})",
            ]
            end = ["graph_manager = BasicRLGraphManager(agent_params, env_params, schedule_params)"]
            end += [f"graph_manager.callbacks = [{', '.join(self.callbacks)}]"] * bool(self.callbacks)
        self.imports |= {("rl_coach.callbacks", one.partition("(")[0]) for one in self.callbacks}
        parts = [("Schedule", schedule), ("Agent", agent), ("Environment", environment)]
        body = "\n\n".join("\n".join([f"# {title}", *lines]) for title, lines in parts if lines)
        body += "\n\n" + "\n".join(end) + "\n"
        used = {(module, name) for module, name in self.imports if f"{name}(" in body or f"{name}." in body}
        modules = sorted({module for module, _ in used})
        imports = [f"from {one} import {', '.join(sorted(name for module, name in used if module == one))}"
                   for one in modules]  # fmt: skip
        maths = "import math\n\n" if "math." in body else ""
        title = f'"""{self.name} with the settings of Stable-Baselines3, converted by coach port."""\n\n'
        return title + maths + "\n".join(imports) + "\n\n" + body, self._flags(seed)

    def _flags(self, seed: Any) -> str:
        device = self.script.known("device", self.given["device"], "auto") if "device" in self.given else "auto"
        flags = f" --seed {seed}" if seed is not None else ""
        return flags + " -c" * (device == "cpu") + " -tb" * ("tensorboard_log" in self.given)

    @property
    def _heatup(self) -> int:
        return min(self.total - 1, int(self.settings.get("learning_starts", 0)))

    def _uses(self, module: str, name: str) -> str:
        self.imports.add((f"rl_coach.{module}", name))
        return name

    def _environment_lines(self) -> list[str]:
        made = self.environment
        kind = self._uses("environments.gym_environment", "Atari" if made.is_atari else "GymVectorEnvironment")
        lines = [f"env_params = {kind}(level={json.dumps(made.level)})"]
        if made.copies > 1:
            lines.append(f"env_params.num_environments = {made.copies}")
        if made.is_async:
            lines.append('env_params.vectorization = "async"')
        if made.settings:
            lines.append(f"env_params.additional_simulator_parameters = {made.settings}")
        return lines

    # the agent

    def _network(self) -> list[str]:
        """The lines that set the networks: layers, weights and optimizers."""
        kwargs = self.script.known("policy_kwargs", self.given.get("policy_kwargs", ast.Constant(None)), None) or {}
        sizes = self._layers(kwargs.pop("net_arch", None))
        activation = kwargs.pop("activation_fn", self.algorithm.activation)
        dense = self._uses("architectures.layers", "Dense")
        is_image = "Cnn" in self.policy
        names = {"TRPO": ("critic", "actor")}.get(self.name, self.algorithm.networks)
        lines = []
        for name in names:
            path, wrapper = name, f'agent_params.network_wrappers["{name}"]'
            lines.append(f"{path} = {wrapper}")
            if self.name == "RecurrentPPO":
                memory = self._uses("architectures.middleware_parameters", "LSTMMiddlewareParameters")
                cells, length = kwargs.pop("lstm_hidden_size", 256), min(32, self.settings["n_steps"])
                lines.append(f"{path}.middleware_parameters = {memory}(number_of_lstm_cells={cells})")
                lines.append(f"{path}.middleware_parameters.sequence_length = {length}")
                what = f"the LSTM follows after the layers, the critic shares both, and sequences have {length} steps"
                self.script.leave_out(self.model, what)
            hidden = sizes["vf" if name in ("critic", "q") else "pi"]
            if name == "q":
                lines.append(f"{path}.heads_parameters[0].network_layers_sizes = {tuple(hidden)}")
            else:
                layers = ", ".join(f"{dense}({size})" for size in ([512, *hidden] if is_image else hidden))
                function = "relu" if is_image and not hidden else activation
                if is_image and function != "relu":
                    self.script.leave_out(self.model, f"relu after the layer with 512 units: it has {function}")
                lines += [f"{path}.middleware_parameters.scheme = [{layers}]",
                          f'{path}.middleware_parameters.activation_function = "{function}"']  # fmt: skip
                lines += [] if is_image else [f"for embedder in {path}.input_embedders_parameters.values():",
                                              "    embedder.scheme = []"]  # fmt: skip
            lines += self._weights(path, name, kwargs)
            lines += self._optimizer(path) if name in self.algorithm.networks else []
        lines += self._of_kind(kwargs, is_image)
        for key in kwargs:
            self.script.leave_out(self.given["policy_kwargs"], f"{key} in policy_kwargs")
        return lines

    def _layers(self, given: Any) -> dict[str, list[int]]:
        """The sizes of the layers of the policy (``pi``) and of the critic (``vf``)."""
        otherwise = list(self.algorithm.layers)
        if "Cnn" in self.policy:  # the extractor of features has a separate layer
            otherwise = [] if self.algorithm.is_on_policy or "main" in self.algorithm.networks else [256, 256]
        given = given[0] if isinstance(given, list) and given and isinstance(given[0], dict) else given
        if isinstance(given, list) and not all(isinstance(size, int) for size in given):
            self.script.leave_out(self.given["policy_kwargs"], f"net_arch {given}: it has the layers {otherwise}")
            given = None
        if not isinstance(given, dict):
            return dict.fromkeys(("pi", "vf"), otherwise if given is None else given)
        policy = given.get("pi", [])
        critic = given.get("vf", given.get("qf", []))
        if policy != critic and "main" in self.algorithm.networks:
            self.script.leave_out(self.given["policy_kwargs"], f"layers {critic} of the critic: it has {policy}")
        return {"pi": policy, "vf": critic}

    def _weights(self, path: str, name: str, kwargs: dict[str, Any]) -> list[str]:
        """The lines that set the initial weights."""
        if not self.algorithm.is_on_policy or not kwargs.get("ortho_init", True):
            return [f'{path}.initial_weights = "kaiming_uniform"']
        orthogonal = self._uses("architectures.initializers", "Orthogonal")
        gains = {"critic": [1.0], "actor": [0.01]}.get(name, [1.0, 0.01])
        return [f"{path}.initial_weights = {orthogonal}(gain=math.sqrt(2))",
                *(f"{path}.heads_parameters[{place}].initial_weights = {orthogonal}(gain={gain})"
                  for place, gain in enumerate(gains))]  # fmt: skip

    def _optimizer(self, path: str) -> list[str]:
        settings = self.settings
        epsilon = settings.get("rms_prop_eps", 1e-5 if self.algorithm.is_on_policy else 1e-8)
        if self.name == "QRDQN":
            epsilon = 0.01 / settings["batch_size"]
        given = {
            "learning_rate": self._schedule(settings["learning_rate"], self._updates),
            "adam_optimizer_beta2": 0.999,
            "optimizer_epsilon": epsilon,
            "batch_size": settings.get("batch_size"),
            "clip_gradients": settings.get("max_grad_norm"),
            "heads_parameters[0].loss_weight": settings.get("vf_coef"),
        }
        if settings.get("use_rms_prop"):
            given |= {"optimizer_type": '"RMSProp"', "rms_prop_optimizer_decay": 0.99}
        return [f"{path}.{setting} = {value}" for setting, value in given.items() if value is not None]

    def _of_kind(self, kwargs: dict[str, Any], is_image: bool) -> list[str]:
        """The lines for settings of networks that only some algorithms have."""
        main, head = "main", "q.heads_parameters[0]"
        kwargs.pop("ortho_init", None)
        lines = []
        if "main" in self.algorithm.networks and self.algorithm.is_on_policy:
            shares = is_image or self.name == "RecurrentPPO"
            lines.append(f"{main}.use_separate_networks_per_head = {not shares}")
        if self.name == "DQN":
            lines.append(f"{main}.replace_mse_with_huber_loss = True")
        if self.name == "QRDQN":
            lines.append(f"agent_params.algorithm.atoms = {kwargs.pop('n_quantiles', 200)}")
        if self.name in ("SAC", "TQC"):
            lines.append(f"{head}.num_critics = {kwargs.pop('n_critics', 2)}")
            lines += [f"{head}.num_quantiles = {kwargs.pop('n_quantiles', 25)}"] * (self.name == "TQC")
            rate = self._schedule(self.settings["learning_rate"], self._updates)
            lines.append(f'agent_params.network_wrappers["temperature"].learning_rate = {rate}')
        if self.name in ("TD3", "DDPG"):
            lines.append('critic.input_embedders_parameters["action"].scheme = []')
        return lines

    @property
    def _updates(self) -> int:
        """The number of steps of a schedule of the learning rate: rollouts for on-policy algorithms, else updates."""
        if self.algorithm.is_on_policy:
            return self.total // self.rollout
        played, updates = self._playing()
        return max(1, (self.total - self._heatup) // max(1, played) * updates)

    def _schedule(self, value: Any, steps: int) -> str:
        """A value or its schedule after the heatup. In Stable-Baselines3, values change from the first step on.

        :param steps: the schedule's steps from the end of the heatup to the end of the run
        """
        if not isinstance(value, Linear):
            return repr(value)
        begun = self._heatup / max(1, self.total)
        if begun >= value.share:
            return f"{self._uses('schedules', 'ConstantSchedule')}({value.last})"
        first = value.first + (value.last - value.first) * begun / value.share
        length = round((value.share - begun) / (1 - begun) * steps)
        return f"{self._uses('schedules', 'LinearSchedule')}({first}, {value.last}, {max(1, length)})"

    def _playing(self) -> tuple[int, int]:
        """The environment steps between two training phases, and the updates of a phase."""
        frequency, updates = self.settings["train_freq"], self.settings["gradient_steps"]
        number = frequency[0] if isinstance(frequency, list) else frequency
        if self._updates_for_each_step and self.name != "TD3":
            self.script.leave_out(self.model, "train_freq in episodes: updates follow after each step")
            number = 1
        steps = number * self.environment.copies
        return steps, steps if updates == -1 else updates

    @property
    def _updates_for_each_step(self) -> bool:
        """True if there is an update for each step of the episodes that have just ended."""
        return self._counts_episodes and self.settings["gradient_steps"] == -1

    @property
    def _counts_episodes(self) -> bool:
        frequency = self.settings["train_freq"]
        return isinstance(frequency, list) and frequency[1] == "episode"

    def _algorithm(self) -> list[str]:
        """The lines that set the algorithm, the memory, the exploration and the filters."""
        settings, path = self.settings, "agent_params.algorithm"
        names = {**_TO_ALGORITHM, "target_kl": "max_kl_divergence" if self.name == "TRPO" else "target_kl_divergence"}
        if self.name not in ("SAC", "TQC"):
            names["ent_coef"] = "beta_entropy"
        lines = [f"{path}.{names[name]} = {value!r}" for name, value in settings.items()
                 if name in names and value is not None]  # fmt: skip
        lines += self._on_policy() if self.algorithm.is_on_policy else self._off_policy()
        if clip := self.environment.clip:
            kind = self._uses("filters.observation.observation_normalization_filter", "ObservationNormalizationFilter")
            lines.append(f"agent_params.pre_network_filter = {self._uses('filters.filter', 'InputFilter')}()")
            lines.append("agent_params.pre_network_filter.add_observation_filter("
                         f'"observation", "normalize", {kind}({-clip}, {clip}))')  # fmt: skip
        if self.environment.stacked and not self.environment.is_atari:
            kind = self._uses("filters.observation.observation_stacking_filter", "ObservationStackingFilter")
            lines.append(f"agent_params.input_filter = {self._uses('filters.filter', 'InputFilter')}()")
            lines.append("agent_params.input_filter.add_observation_filter("
                         f'"observation", "stack", {kind}({self.environment.stacked}))')  # fmt: skip
        return lines

    def _on_policy(self) -> list[str]:
        path, settings = "agent_params.algorithm", self.settings
        if self.name == "A2C":
            return [f"{path}.num_steps_between_gradient_updates = {settings['n_steps']}",
                    f"{path}.learns_from_copies_together = True"]  # fmt: skip
        lines = [f"{path}.num_consecutive_playing_steps = EnvironmentSteps({self.rollout})"]
        if "clip_range" in settings:
            lines.append(
                f"{path}.num_steps_between_copying_online_weights_to_target = EnvironmentSteps({self.rollout})"
            )
            clip = settings["clip_range"]
            lines.append(f"{path}.clip_likelihood_ratio_using_epsilon = {getattr(clip, 'first', clip)}")
            if isinstance(clip, Linear):
                shares = Linear(1.0, clip.last / clip.first, clip.share)
                lines.append(f"{path}.clipping_decay_schedule = {self._schedule(shares, self.total)}")
        return lines

    def _off_policy(self) -> list[str]:
        path, settings = "agent_params.algorithm", self.settings
        granularity = self._uses("memories.memory", "MemoryGranularity")
        lines = [f"agent_params.memory.max_size = ({granularity}.Transitions, {int(settings['buffer_size'])})"]
        if self.name == "DDPG":
            replay = self._uses("memories.non_episodic.experience_replay", "ExperienceReplayParameters")
            lines.insert(0, f"agent_params.memory = {replay}()")
        played, updates = self._playing()
        in_steps = not self._counts_episodes or (self._updates_for_each_step and self.name != "TD3")
        unit = "EnvironmentSteps" if in_steps else "EnvironmentEpisodes"
        lines.append(f"{path}.num_consecutive_playing_steps = {unit}({played})")
        lines.append(f"{path}.num_consecutive_training_steps = {updates}")
        # DQN's targets are updated after environment steps, targets of other algorithms after updates
        period = "EnvironmentSteps" if "main" in self.algorithm.networks else self._uses("core_types", "TrainingSteps")
        every = settings.get("target_update_interval", settings.get("policy_delay", 1))
        lines.append(f"{path}.num_steps_between_copying_online_weights_to_target = {period}({every})")
        if settings["n_steps"] != 1:
            lines.append(f"{path}.n_step = {settings['n_steps']}")
        if "exploration_fraction" in settings:
            epsilon = Linear(settings["exploration_initial_eps"], settings["exploration_final_eps"],
                              settings["exploration_fraction"])  # fmt: skip
            schedule = self._schedule(epsilon, self.total - self._heatup)
            lines.append(f"agent_params.exploration.epsilon_schedule = {schedule}")
            lines.append("agent_params.exploration.evaluation_epsilon = 0.0")
        if self.name in ("SAC", "TQC"):
            lines += self._temperature()
        if self.name in ("TD3", "DDPG"):
            lines += self._noise()
        if self.name == "TD3":
            lines.append(f"{path}.act_for_full_episodes = {self._updates_for_each_step}")
        return lines

    def _temperature(self) -> list[str]:
        coefficient, entropy = self.settings["ent_coef"], self.settings["target_entropy"]
        lines = [] if entropy == "auto" else [f"agent_params.algorithm.target_entropy = {entropy}"]
        if not isinstance(coefficient, str):
            lines.append(f"agent_params.algorithm.temperature = {coefficient}")
        elif coefficient.startswith("auto_"):
            values = self._uses("base_parameters", "ValuesParameters")
            first = f'{values}({{"log_temperature": {math.log(float(coefficient[5:]))}}}'
            rate = self._schedule(self.settings["learning_rate"], self._updates)
            lines.append(f'agent_params.network_wrappers["temperature"] = {first}, learning_rate={rate})')
        return lines

    def _noise(self) -> list[str]:
        node = self.script.resolve(self.given.get("action_noise"))
        given = self.script.keywords(node, ("mean", "sigma")) if isinstance(node, ast.Call) else {}
        sigma = self.script.known("sigma", given["sigma"], 0.0) if "sigma" in given else 0.0
        if self.script.called(node) == "OrnsteinUhlenbeckActionNoise":
            self.script.leave_out(node, "OrnsteinUhlenbeckActionNoise: Gaussian noise of the same size is used")
        if self.name == "TD3":
            self.script.leave_out(self.model, "target_policy_noise and target_noise_clip: in Coach they have the unit "
                                  "of the actions, so multiply them by half of the range")  # fmt: skip
        noise, constant = "exploration_policies.additive_noise", self._uses("schedules", "ConstantSchedule")
        return [f"agent_params.exploration = {self._uses(noise, 'AdditiveNoiseParameters')}()",
                f"agent_params.exploration.noise_schedule = {constant}({sigma / 2})  # of the range of the actions",
                "agent_params.exploration.evaluation_noise = 0.0"]  # fmt: skip
