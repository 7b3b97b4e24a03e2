"""`leat prepare --on`: a flow as an array of Slurm, as tasks of Ray, as a Job or JobSet of Kubernetes; by submitit."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from leat._prepare import _flow, _ray
from leat.testing import find_binary
from prepare_flows import FLOW, check_whole, done, flow_in, here, log_of, notes_of, printed, state_of
from slurm_cluster import cluster
from small_datasets import make_pictures

SHORT = FLOW.split('[[step]]\ndo = "warm"')[0]


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("source")
    make_pictures(folder, 60)
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, source) -> pathlib.Path:
    flow = flow_in(tmp_path_factory.mktemp("undisturbed"), source)
    done(flow)
    return flow


# --- Slurm ------------------------------------------------------------------


def test_an_array_of_slurm_does_a_flow(source, undisturbed, tmp_path, monkeypatch):
    """One task of it is cancelled as it works, and the others do its units."""
    (tmp_path / "slurm").mkdir()
    flow = flow_in(tmp_path, source)
    page = tmp_path / "page.html"
    with cluster(tmp_path / "slurm") as env:
        monkeypatch.setenv("SLURM_CONF", env["SLURM_CONF"])
        told = done(flow, "--on", "slurm", "--tasks", "3", "--sbatch=--time=10", "--lease", "2", "--page", str(page))
        job = told.split()[2].rstrip(":")
        assert "3 tasks" in told and job.isdecimal()
        wait_for(lambda: len({event["pid"] for event in log_of(flow)}) > 1)
        subprocess.run(["scancel", "--signal=KILL", f"{job}_1"], env=env, check=True)
        queue = ["squeue", "-h", "-j", job]
        wait_for(lambda: not subprocess.run(queue, env=env, capture_output=True, check=False).stdout)

    check_whole(flow, undisturbed)
    units = [(event["step"], event["unit"]) for event in log_of(flow) if event["event"] == "done"]
    assert len(units) == len(set(units))
    assert "steps are done" in "".join(file.read_text() for file in state_of(flow).glob("log/slurm-*.out"))
    assert "State</dt><dd class=\"wide\">done" in page.read_text()


def wait_for(what, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_script_for_slurm_is_printed(tmp_path):
    flow = flow_in(tmp_path, "in", text=SHORT)
    words = ["--tasks", "8", "--processes", "4", "--sbatch=--partition=cpu", "--page", "a b.html", "--watch", "5"]
    script = printed(flow, "--on", "slurm", "--print", *words)

    assert script.startswith("#!/bin/bash\n#SBATCH --job-name=leat-flow\n#SBATCH --array=0-7\n")
    assert "#SBATCH --cpus-per-task=4\n" in script and "#SBATCH --partition=cpu\n" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    run = script.replace("exec ", "exec printf '%s\\n' ")
    for task, has_page in (("0", True), ("1", False)):
        env = {"SLURM_ARRAY_TASK_ID": task}
        said = subprocess.run(["bash"], input=run, capture_output=True, text=True, check=True, env=env)
        lines = said.stdout.splitlines()
        assert lines[:3] == [os.path.abspath(find_binary()), "prepare", str(flow)]
        assert (lines[-2:] == ["--page", os.path.abspath("a b.html")]) == has_page


@pytest.mark.parametrize(("name", "says"), [
    ("plain", "{}/plain/slurm-%A-%a.out"),
    ("a#b", '"{}/a#b/slurm-%A-%a.out"'),
    ("a b's", '"{}/a b\'s/slurm-%A-%a.out"'),
    ("50%j", "{}/50%%j/slurm-%A-%a.out"),
])  # fmt: skip
def test_the_output_is_named_so_that_slurm_reads_it_as_it_is(tmp_path, monkeypatch, name, says):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    flow = flow_in(tmp_path, "in", text='state = "s3://bucket/state"\n' + SHORT)
    assert f"#SBATCH --output={says.format(tmp_path)}\n" in printed(flow, "--on", "slurm", "--print")


def test_an_option_for_sbatch_is_one_line(tmp_path):
    flow = flow_in(tmp_path, "in", text=SHORT)
    code, _, err = here(flow, "--on", "slurm", "--print", "--sbatch=--x\nrm -rf /")
    assert code == 2 and "one option of sbatch" in err


def test_without_sbatch_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAT_BINARY", find_binary())
    monkeypatch.setenv("PATH", str(tmp_path))
    flow = flow_in(tmp_path, "in", text=SHORT)
    code, _, err = here(flow, "--on", "slurm")
    assert code == 1 and "no sbatch here" in err


# --- Ray --------------------------------------------------------------------


def test_tasks_of_ray_do_a_flow_though_one_dies(source, undisturbed, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="ray has the cluster: pip install ray")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(f"""
import os, sys
if "default_worker" in " ".join(sys.orig_argv):
    from leat._prepare import _steps
    def done(self, unit):
        if unit == 3 and not os.path.exists("{broken}/died"):
            open("{broken}/died", "w").close()
            os._exit(9)
        return done_before(self, unit)
    done_before, _steps.Verify.done = _steps.Verify.done, done
""")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", f"{broken}:{os.environ.get('PYTHONPATH', '')}")
    flow = flow_in(tmp_path, source)
    done(flow, "--on", "ray", "--processes", "2")

    check_whole(flow, undisturbed)
    events = log_of(flow)
    ends = [event for event in events if event["event"] == "done"]
    assert len(ends) == len(notes_of(flow)) and len({event["pid"] for event in ends}) >= 2
    [again] = [event for event in events if event["event"] == "retry"]
    assert (again["step"], again["unit"]) == ("2-verify", 3) and "Ray: " in again["error"]


def test_a_process_of_ray_keeps_what_it_knows_of_one_flow(tmp_path, monkeypatch):
    knew = []

    def do(flow, state, steps, asked):
        knew.append(len(steps))
        steps[asked["step"]] = "its dataset"

    monkeypatch.setattr(_ray, "_known", {})
    monkeypatch.setattr(_ray, "do", do)
    flow = _flow.read(str(flow_in(tmp_path, "in", text=SHORT)))
    for number in (1, 1, 2, 3):
        _ray._do({**dataclasses.asdict(flow), "state": f"{tmp_path}/state-{number}"}, {"step": 0, "unit": 0})

    assert knew == [0, 1, 0, 0] and len(_ray._known) == 1


def test_without_ray_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    flow = flow_in(tmp_path, "in", text=SHORT)
    before = signal.getsignal(signal.SIGTERM)
    code, _, err = here(flow, "--on", "ray")
    signal.signal(signal.SIGTERM, before)
    assert code == 2 and "pip install ray" in err


# --- Kubernetes -------------------------------------------------------------

OF_BUCKETS = """# Größe: 4 kB
state = "s3://bucket/state"
[source]
url = "s3://bucket/photos"

[[step]]
do = "pack"
dest = "/data/shards"
"""
ON_PODS = ["--image", "registry.example/leat:1", "--tasks", "8", "--processes", "4", "--volume", "claim-1:/data",
           "--secret", "keys"]  # fmt: skip


def schema():
    return pytest.importorskip("kubeflow_trainer_api.models", reason="the schema is in: pip install kubeflow-trainer-api")


def objects_of(text: str) -> list[dict]:
    yaml = pytest.importorskip("yaml", reason="PyYAML reads it: pip install pyyaml")
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize("where", ["kubernetes", "jobset"])
@pytest.mark.parametrize("text", [OF_BUCKETS, OF_BUCKETS.replace("ö", "o").replace("ß", "ss") + "\n\t# \n\n"])
def test_what_is_printed_for_kubernetes_is_as_its_schema_says(tmp_path, where, text):
    models = schema()
    flow = flow_in(tmp_path, "", text="x")
    flow.write_text(text)
    config, job = objects_of(printed(flow, "--on", where, *ON_PODS))

    assert config["data"] == {"flow.toml": text}
    check(models.IoK8sApiCoreV1ConfigMap, config)
    if where == "jobset":
        check(models.JobsetV1alpha2JobSet, job)
        assert (job["apiVersion"], job["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
        [group] = job["spec"]["replicatedJobs"]
        spec = group["template"]["spec"]
    else:
        check(models.IoK8sApiBatchV1Job, job)
        assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
        spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 8, 8)
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert container["command"][:4] == ["leat", "prepare", "/etc/leat/flow.toml", "--processes"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"flow": "/etc/leat", "claim-1": "/data"}
    assert mounts.keys() == {one["name"] for one in pod["volumes"]}
    assert pod["volumes"][0]["configMap"]["name"] == config["metadata"]["name"]


def check(model, told: dict) -> None:
    """A field that the schema does not know is left out by it; wrong types and missing fields raise."""
    assert model.from_dict(told).to_dict() == told


def test_the_schema_finds_a_wrong_field(tmp_path):
    """So that the test above can fail."""
    models = schema()
    flow = flow_in(tmp_path, "", text="x")
    flow.write_text(OF_BUCKETS)
    _, job = objects_of(printed(flow, "--on", "kubernetes", *ON_PODS))
    for wrong in ({"completion": 8}, {"completions": "8"}):
        with pytest.raises((AssertionError, ValueError)):
            check(models.IoK8sApiBatchV1Job, {**job, "spec": {**job["spec"], **wrong}})


@pytest.mark.parametrize(("words", "text", "says"), [
    ([], OF_BUCKETS, "needs --image"),
    (["--image", "x"], OF_BUCKETS, "step 1, dest: pods do not see /data/shards"),
    (["--image", "x", "--volume", "a:/other"], OF_BUCKETS, "pods do not see"),
    (["--image", "x", "--volume", "A:/data"], OF_BUCKETS, "write CLAIM:/PATH"),
    (["--image", "x", "--volume", "a:/data"], OF_BUCKETS.replace('state = "s3:/', 'state = "'), "state: pods do not see"),
])  # fmt: skip
def test_pods_that_could_not_do_the_flow_are_refused(tmp_path, words, text, says):
    flow = flow_in(tmp_path, "", text="x")
    flow.write_text(text)
    code, _, err = here(flow, "--on", "kubernetes", *words)
    assert code == 2 and says in err


# --- submitit ---------------------------------------------------------------


def test_submitit_runs_calls_of_a_flow(source, tmp_path):
    submitit = pytest.importorskip("submitit", reason="submitit submits them: pip install submitit")
    flow = flow_in(tmp_path, source, text=SHORT)
    executor = submitit.AutoExecutor(folder=tmp_path / "jobs", cluster="local")
    executor.update_parameters(timeout_min=2)
    with executor.batch():
        jobs = [executor.submit(submitit.helpers.CommandFunction([find_binary(), "prepare", str(flow)])) for _ in range(2)]
    told = [job.result() for job in jobs]

    assert all("3 steps are done" in one for one in told)
    units = [(event["step"], event["unit"]) for event in log_of(flow) if event["event"] == "done"]
    assert len(units) == len(set(units)) == len(notes_of(flow))
    assert json.loads((state_of(flow) / "manifest.json").read_text())["steps"]
