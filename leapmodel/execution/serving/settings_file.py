"""The file of settings for ``leapmodel serve``.

It is TOML: top-level keys are those of :class:`~leapmodel.execution.serving.config.ServingConfig`,
the tables ``[target]`` and ``[draft]`` hold those of a
:class:`~leapmodel.execution.serving.config.ServerConfig`, and ``preset`` names the settings they
start from.
"""

from __future__ import annotations

import dataclasses
import tomllib
import types
import typing
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from leapmodel.errors import DataError, UsageError, shown
from leapmodel.execution.serving.config import ServerConfig, ServingConfig
from leapmodel.execution.serving.presets import preset


def read_serving_config(path: str | Path) -> ServingConfig:
    """Read a TOML file of settings.

    Parameters
    ----------
    path : str or Path
        Adapters, and models that begin with ``.`` or ``~``, are folders, taken from the file's own;
        another name of a model is a hub's.

    Raises
    ------
    DataError
        If a key is unknown or a value is not of its kind.
    UsageError
        If it names a preset that there is not.
    """
    try:
        said = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: can't read it ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(path, expected="TOML", found=str(error)) from None
    preset_name = said.pop("preset", None)
    if preset_name is not None and not isinstance(preset_name, str):
        raise DataError(path, column="preset", expected="a text", found=shown(preset_name))
    config = ServingConfig(ServerConfig()) if preset_name is None else preset(preset_name)
    tables = {role: said.pop(role, {}) for role in ("target", "draft")}
    top = _checked(path, said, ServingConfig, where="", also=("preset", "target", "draft"))
    servers: dict[str, dict[str, Any]] = {}
    for role, table in tables.items():
        if table is False and role == "draft":
            config = dataclasses.replace(config, draft=None)
            table = {}
        if not isinstance(table, dict):
            raise DataError(path, column=role, expected="a table", found=shown(table))
        server = _checked(path, table, ServerConfig, where=f"{role}.")
        servers[role] = _from_the_files_folder(server, Path(path).parent)
    config = dataclasses.replace(config, **top)
    return config.replacing(target=servers["target"], draft=servers["draft"])


def _from_the_files_folder(server: dict[str, Any], folder: Path) -> dict[str, Any]:
    def absolute(text: str) -> str:
        return str((folder / Path(text).expanduser()).resolve())

    if str(server.get("model", "")).startswith((".", "~")):
        server["model"] = absolute(server["model"])
    if "chat_template" in server:
        server["chat_template"] = absolute(server["chat_template"])
    if "adapters" in server:
        server["adapters"] = {name: absolute(p) for name, p in server["adapters"].items()}
    return server


def _checked(
    path: str | Path, said: dict[str, Any], kind: type, *, where: str, also: tuple[str, ...] = ()
) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind) if f.name not in ("target", "draft")]
    for key, value in said.items():
        if key not in known:
            near = get_close_matches(key, [*known, *also], n=1)
            expected = f"{near[0]}" if near else f"one of {', '.join([*also, *known])}"
            raise DataError(path, column=where + key, expected=expected, found="an unknown key")
        if not _is_a(value, hints[key]):
            raise DataError(
                path, column=where + key, expected=_KINDS[hints[key]], found=shown(value)
            )
    return {
        key: float(value) if hints[key] in (float, float | None) else value
        for key, value in said.items()
    }


_KINDS: dict[Any, str] = {
    str: "a text",
    str | None: "a text",
    int: "a whole number",
    int | None: "a whole number",
    float: "a number",
    float | None: "a number",
    bool: "true or false",
    bool | None: "true or false",
    dict[str, str]: "a table of texts",
    list[str]: "a list of texts",
}


def _is_a(value: object, hint: Any) -> bool:
    if isinstance(hint, types.UnionType):
        return any(_is_a(value, one) for one in typing.get_args(hint) if one is not type(None))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint == dict[str, str]:
        return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    if hint == list[str]:
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    return isinstance(value, hint)
