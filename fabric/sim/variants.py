"""Sites that differ from a file's in some settings of the intent."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from fabric.errors import InputError
from fabric.intent import Intent
from fabric.site import Site, check_devices
from fabric.yamlfile import YamlFile, load_yaml

ROOT = "intent."


class Variants:
    """A ``fabric.yaml`` that can be read with other settings; the file stays as it is."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._file = load_yaml(site.path)

    def with_settings(self, settings: Mapping[str, str]) -> Site:
        """The site with these settings, each a dotted key below ``intent`` and a YAML value.

        InputError names the setting that does not hold or makes no valid site.
        """
        if not settings:
            return self.site
        intent = self.intent_with(settings)
        document = self.site.document.model_copy(update={"intent": intent})
        site = dataclasses.replace(self.site, document=document)
        try:
            check_devices(site, self._file)
        except InputError as error:
            raise _about(settings, error, error.key) from error
        return site

    def intent_with(self, settings: Mapping[str, str]) -> Intent:
        """The intent alone, as :meth:`with_settings` without a look at the devices."""
        data = _plain(self._file.data["intent"])
        for key, text in settings.items():
            _set(data, key, text)
        try:
            return YamlFile(self.site.path, data).validate(Intent)
        except InputError as error:
            key = f"{ROOT}{error.key}" if error.key else ""
            raise _about(settings, error, key) from error


def _about(settings: Mapping[str, str], error: InputError, key: str) -> InputError:
    said = ", ".join(f"{name}={text}" for name, text in settings.items())
    return InputError(": ".join(part for part in (said, key, error.reason) if part))


def _plain(node: object) -> Any:  # noqa: ANN401 - YAML
    """A copy without the lines of the file, which settings of ours have not."""
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items()}
    return [_plain(value) for value in node] if isinstance(node, list) else node


def _set(data: Any, key: str, text: str) -> None:  # noqa: ANN401 - a YAML mapping
    steps = key.removeprefix(ROOT).split(".")
    if not key.startswith(ROOT) or not all(steps):
        raise InputError(
            f"{key}: not a setting of the intent",
            advice="Write it like intent.profiles.25G.kmin or intent.dcqcn.ai_rate_mbps.",
        )
    for step in steps[:-1]:
        if step not in data:
            data[step] = {}
        data = data[step]
        if not isinstance(data, dict):
            raise InputError(f"{key}: {step} holds no settings of its own")
    data[steps[-1]] = _value(key, text)


def _value(key: str, text: str) -> object:
    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise InputError(f"{key}={text}: not a YAML value") from error
