"""Training on several machines: a collective over messages, and the engine that runs it on Ray."""

from typing import Any

from hcpf._checks import one_of
from hcpf.distributed.ray import RayEngine
from hcpf.errors import ParameterError
from hcpf.training.engine import LOCAL_ENGINE, Engine

ENGINES = ("local", "ray")


def engine_of(engine: Any, workers: Any = None, address: Any = None) -> Engine:
    """Return the engine of ``fit``'s arguments."""
    if isinstance(engine, RayEngine):
        if workers is not None or address is not None:
            raise ParameterError(
                "workers and address are parameters of RayEngine where engine is one. Give them "
                "there: RayEngine(workers=..., address=...)."
            )
        return engine
    if one_of("engine", engine, ENGINES) == "ray":
        return RayEngine(workers=workers, address=address)
    if workers not in (None, 1) or address is not None:
        name, value = ("address", address) if address is not None else ("workers", workers)
        raise ParameterError(
            f"{name}={value!r} requires engine='ray': the local engine has one worker, which uses "
            f"all cores. Add engine='ray', or remove {name}={value!r}."
        )
    return LOCAL_ENGINE
