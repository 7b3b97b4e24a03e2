"""A flow as an indexed Job of Kubernetes, or as a JobSet: YAML, whose pods share the units of the flow."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from leat._formats._table._manifest import is_local
from leat._prepare._flow import Flow, read
from leat.errors import InvalidArgument

_FOLDER = "/etc/leat"
_MOST_FLOW_BYTES = 900_000
"""A ConfigMap has at most a mebibyte."""
_END_SECONDS = 60


def yaml_of(options: argparse.Namespace) -> str:
    """The ConfigMap that holds the flow, and the Job or JobSet.

    Raises:
        leat.InvalidArgument: an option is missing or wrong, or the flow names a place that pods do not see.
        OSError: the flow cannot be read.
    """
    if not options.image:
        raise InvalidArgument("--on kubernetes needs --image, an image that has leat: pip install leat")
    text = pathlib.Path(options.flow).read_text(encoding="utf-8")
    if len(text.encode()) > _MOST_FLOW_BYTES:
        raise InvalidArgument(f"{options.flow}: a ConfigMap holds at most {_MOST_FLOW_BYTES:,} bytes of it")
    file = os.path.basename(options.flow)
    if not re.fullmatch(r"[\w.-]{1,200}", file):
        raise InvalidArgument(f"{file!r}: a ConfigMap takes letters, digits, '.', '_' and '-' in the name of a file")
    volumes = _volumes(options.volume)
    _check_places(read(f"{_FOLDER}/{file}", text), volumes)
    name = f"leat-{re.sub(r'[^a-z0-9]+', '-', file.removesuffix('.toml').lower()).strip('-')[:40].strip('-') or 'flow'}"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {file: text}}
    spec = _job(name, _pod(name, f"{_FOLDER}/{file}", volumes, options), options.tasks)
    job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    if options.on == "jobset":
        job = {
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
            "spec": {"replicatedJobs": [{"name": "prepare", "replicas": 1, "template": {"spec": spec}}]},
        }  # fmt: skip
    return "---\n".join("\n".join(_yaml(one)) + "\n" for one in (config, job))


def _job(name: str, pod: Mapping[str, Any], tasks: int) -> dict[str, Any]:
    """An index is a call of `leat prepare`; those that end in an error come again, and disturbed pods do not count."""
    return {
        "completionMode": "Indexed", "completions": tasks, "parallelism": tasks, "backoffLimitPerIndex": 3,
        "podFailurePolicy": {"rules": [{
            "action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }]},
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": name}}, "spec": pod},
    }  # fmt: skip


def _pod(name: str, flow: str, volumes: Mapping[str, str], options: argparse.Namespace) -> dict[str, Any]:
    words = ["leat", "prepare", flow, "--processes", str(options.processes), "--retries", str(options.retries),
             "--lease", f"{options.lease:g}"]  # fmt: skip
    if options.watch is not None:
        words += ["--watch", f"{options.watch:g}"]
    container: dict[str, Any] = {
        "name": "prepare", "image": options.image, "command": words,
        "resources": {"requests": {"cpu": str(options.processes)}},
        "volumeMounts": [
            {"name": "flow", "mountPath": _FOLDER, "readOnly": True},
            *({"name": claim, "mountPath": path} for claim, path in volumes.items()),
        ],
    }  # fmt: skip
    if options.secret:
        container["envFrom"] = [{"secretRef": {"name": options.secret}}]
    return {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": _END_SECONDS, "containers": [container],
        "volumes": [
            {"name": "flow", "configMap": {"name": name}},
            *({"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in volumes),
        ],
    }  # fmt: skip


def _volumes(given: list[str]) -> dict[str, str]:
    """The path of each claim."""
    found = {}
    for word in given:
        match = re.fullmatch(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?):(/[^:]+)", word)
        if match is None or match[1] == "flow":
            raise InvalidArgument(f"--volume {word}: write CLAIM:/PATH, such as --volume data:/data")
        found[match[1]] = posixpath.normpath(match[3])
    return found


def _check_places(flow: Flow, volumes: Mapping[str, str]) -> None:
    places = {"state": flow.state, "[source] url": flow.source["url"]}
    for number, step in enumerate(flow.steps, 1):
        places.update({f"step {number}, {key}": step[key] for key in ("dest", "url", "cache_disk") if key in step})
    for what, place in places.items():
        path = posixpath.normpath(place.removeprefix("file://"))
        is_seen = any(path == volume or path.startswith(f"{volume}/") for volume in volumes.values())
        if is_local(place) and not is_seen:
            raise InvalidArgument(
                f"{what}: pods do not see {path}; give a URL, or a path in a volume: --volume CLAIM:/PATH"
            )


def _yaml(value: Any, indent: str = "") -> list[str]:
    """As YAML, in which texts are quoted as JSON quotes them, and long ones of plain letters are blocks."""
    if isinstance(value, Mapping):
        lines = []
        for key, inner in value.items():
            name = key if re.fullmatch(r"[A-Za-z]+", key) else json.dumps(key)
            below = _yaml(inner, indent + "  ")
            if isinstance(inner, str) and _is_block(inner):
                lines += [f"{indent}{name}: |", *(f"{indent}  {line}".rstrip() for line in inner.splitlines())]
                continue
            is_plain = not isinstance(inner, (Mapping, list)) or not inner
            lines += [f"{indent}{name}: {below[0].strip()}"] if is_plain else [f"{indent}{name}:", *below]
        return lines or [f"{indent}{{}}"]
    if isinstance(value, list):
        lines = []
        for inner in value:
            first, *rest = _yaml(inner, indent + "  ")
            lines += [f"{indent}- {first.strip()}", *rest]
        return lines or [f"{indent}[]"]
    # YAML has no pairs of surrogates, and takes such letters as they are.
    said = json.dumps(value, ensure_ascii=False)
    return [indent + re.sub(r"[\x7f-\uffff]", lambda letter: f"\\u{ord(letter[0]):04x}", said)]


def _is_block(text: str) -> bool:
    """Whether YAML keeps its lines as they are: letters that show, and no space at an end."""
    *lines, last = text.split("\n")
    return bool(lines) and not last and bool(lines[-1]) and not lines[0][:1].isspace() and bool(lines[0]) and all(
        line == line.rstrip() and line.isascii() and line.replace("\t", "").isprintable() for line in lines
    )  # fmt: skip
